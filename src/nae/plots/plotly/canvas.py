"""Figures in the library's style. Names are data, so they are escaped before plotly reads them as HTML."""

import html
from collections.abc import Sequence
from typing import Any

from nae._optional import require
from nae.plots.style import STYLE, shorten, shorten_all

__all__ = ["LEGEND", "colour_scale", "graph", "new_figure", "plain", "set_places", "translucent"]

LEGEND: dict[str, Any] = {"orientation": "h", "yref": "container", "y": 0.02, "yanchor": "bottom", "x": 0}


def graph() -> Any:
    """Return plotly's graph objects."""
    return require("plotly.graph_objects", extra="plotly")


def plain(text: str, limit: int = 40) -> str:
    """Return a text escaped so that plotly shows it literally."""
    return html.escape(shorten(text, limit), quote=False)


def set_places(figure: Any, which: str, labels: Sequence[str], *, limit: int, **place: int) -> None:
    """Label the whole numbers of an axis with names; plotly would merge two equal names if they were positions."""
    options = {
        "tickmode": "array",
        "zeroline": False,
        "showgrid": False,
        "tickvals": list(range(len(labels))),
        "ticktext": [html.escape(text, quote=False) for text in shorten_all(labels, limit)],
    }
    if which == "y":
        figure.update_yaxes(range=[len(labels) - 0.4, -0.6], **options, **place)
    else:
        figure.update_xaxes(range=[-0.5, len(labels) - 0.5], **options, **place)


def new_figure(*, title: str, note: str = "", height: int = 420, width: int | None = None) -> Any:
    """Return an empty figure."""
    text = f"<b>{plain(title, 80)}</b>"
    if note:
        text += f"<br><span style='font-size:12px;color:{STYLE.soft}'>{plain(note, 120)}</span>"
    figure = graph().Figure()
    figure.update_layout(
        title={"text": text, "x": 0.01, "xanchor": "left", "font": {"size": 16, "color": STYLE.ink}},
        height=height,
        width=width,
        template="none",
        paper_bgcolor=STYLE.paper,
        plot_bgcolor=STYLE.paper,
        font={"color": STYLE.ink, "size": 12},
        margin={"l": 70, "r": 30, "t": 70, "b": 90},
        legend=LEGEND,
        hovermode="closest",
    )
    figure.update_xaxes(gridcolor=STYLE.faint, zerolinecolor=STYLE.soft, linecolor=STYLE.soft, automargin=True)
    figure.update_yaxes(gridcolor=STYLE.faint, zerolinecolor=STYLE.soft, linecolor=STYLE.soft, automargin=True)
    return figure


def translucent(colour: str, alpha: float) -> str:
    """Return a colour with some opacity."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def colour_scale(stops: tuple[str, ...]) -> list[list[Any]]:
    """Return a colour scale that interpolates the given colours."""
    return [[at / (len(stops) - 1), colour] for at, colour in enumerate(stops)]
