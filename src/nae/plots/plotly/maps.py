"""Maps of pairs, panels of three features, and the matrix of interactions."""

import math
from typing import Any

import numpy as np

from nae._optional import require
from nae.plots.layouts.maps import MapAxis, MapLayout, MatrixLayout
from nae.plots.plotly.canvas import colour_scale, graph, new_figure, plain, set_places
from nae.plots.style import STYLE, format_value

__all__ = ["draw_map", "draw_matrix", "draw_panels"]


def draw_map(layout: MapLayout) -> Any:
    """Draw what two features do together, as a colour map, or as lines if one of them has few values."""
    if layout.is_lines:
        return _draw_lines(layout)
    figure = new_figure(title=layout.title, note=layout.note, height=520)
    figure.update_layout(plot_bgcolor=STYLE.density)  # the colour of places without rows
    figure.add_trace(_heat(layout, has_bar=True))
    _set_sides(figure, layout)
    return figure


def draw_panels(layouts: tuple[MapLayout, ...], *, title: str = "", n_columns: int = 3) -> Any:
    """Draw one map per value of the third feature, all with the same colour scale."""
    subplots = require("plotly.subplots", extra="plotly")
    n_columns = max(1, min(n_columns, len(layouts)))
    n_rows = math.ceil(len(layouts) / n_columns)
    figure = subplots.make_subplots(
        rows=n_rows, cols=n_columns, subplot_titles=[plain(layout.title, 36) for layout in layouts]
    )
    base = new_figure(title=title, note=layouts[0].note, height=120 + 280 * n_rows).layout
    figure.update_layout(
        title=base.title, height=base.height, template="none", font=base.font, plot_bgcolor=STYLE.density
    )
    for at, layout in enumerate(layouts):
        place = {"row": at // n_columns + 1, "col": at % n_columns + 1}
        figure.add_trace(_heat(layout, has_bar=at == 0), **place)
        _set_sides(figure, layout, **place)
    return figure


def draw_matrix(layout: MatrixLayout, *, title: str = "Which features change each other's effect") -> Any:
    """Draw the directed matrix: the features in columns change the effects of the features in rows."""
    n = len(layout.names)
    note = f"{layout.hidden} weaker features not shown" if layout.hidden else ""
    figure = new_figure(title=title, note=note, height=260 + 26 * n)
    names = [plain(name) for name in layout.names]
    figure.add_trace(
        graph().Heatmap(
            z=np.where(np.eye(n, dtype=bool), np.nan, layout.values),
            text=[[f"{cause} changes {name}" for cause in names] for name in names],
            colorscale=colour_scale(STYLE.sequential),
            zmin=0,
            colorbar={"title": {"text": plain(layout.label, 60), "side": "right"}},
            hovertemplate="%{text} by %{z:.3g}<extra></extra>",
        )
    )
    set_places(figure, "y", layout.names, limit=24)
    set_places(figure, "x", layout.names, limit=24)
    figure.update_yaxes(title={"text": "the effect of this feature is changed …"})
    figure.update_xaxes(title={"text": "… by the value of"})
    return figure


def _heat(layout: MapLayout, *, has_bar: bool) -> Any:
    return graph().Heatmap(
        z=np.where(layout.has_data, layout.values, np.nan),
        x=layout.x.edges,
        y=layout.y.edges,
        text=[[f"{plain(x)}<br>{plain(y)}" for x in layout.x.ticks] for y in layout.y.ticks],
        colorscale=colour_scale(STYLE.diverging),
        zmin=-layout.limit,
        zmax=layout.limit,
        showscale=has_bar,
        colorbar={"title": {"text": plain(layout.label, 60), "side": "right"}},
        hovertemplate="%{text}<br>%{z:.4g}<extra></extra>",
    )


def _draw_lines(layout: MapLayout) -> Any:
    figure = new_figure(title=layout.title, note=layout.note, height=420)
    n_places = len(layout.x.centres)
    sizes = np.full(n_places, 6 if n_places <= 32 else 0)
    if layout.x.has_gap:
        sizes[-1] = 6  # a single point makes no line
    for at, text in enumerate(layout.y.ticks):
        label = format_value(float(layout.y.centres[at])) if layout.y.is_number else text
        figure.add_trace(
            graph().Scatter(
                x=layout.x.centres,
                y=np.where(layout.has_data[at], layout.values[at], np.nan),
                mode="lines+markers",
                marker={"size": sizes, "line": {"width": 0}},
                line={"color": STYLE.series[at % len(STYLE.series)]},
                name=f"{plain(layout.y.label, 24)} = {plain(label, 24)}",
            )
        )
    _set_places(figure, "x", layout.x)
    figure.update_xaxes(title={"text": plain(layout.x.label)})
    figure.update_yaxes(title={"text": plain(layout.label, 60)})
    return figure


def _set_sides(figure: Any, layout: MapLayout, **place: int) -> None:
    for which, side in (("x", layout.x), ("y", layout.y)):
        _set_places(figure, which, side, **place)
    figure.update_xaxes(title={"text": plain(layout.x.label)}, **place)
    if not layout.y.is_number:
        figure.update_yaxes(range=[-0.5, len(layout.y.ticks) - 0.5], **place)
    if not place or place["col"] == 1:
        figure.update_yaxes(title={"text": plain(layout.y.label)}, **place)


def _set_places(figure: Any, which: str, side: MapAxis, **place: int) -> None:
    if side.has_gap:
        places, words = zip(*side.marks, strict=True)
        update = figure.update_xaxes if which == "x" else figure.update_yaxes
        update(tickmode="array", tickvals=list(places), ticktext=list(words), **place)
    elif not side.is_number:
        set_places(figure, which, side.ticks, limit=20, **place)
