"""Importance bars and the waterfall of one row."""

from collections.abc import Sequence
from typing import Any

from nae.plots.layouts.bars import ImportanceLayout, Step, WaterfallLayout
from nae.plots.plotly.canvas import graph, new_figure, plain, set_places
from nae.plots.style import STYLE, decimals_for, format_fixed

__all__ = ["draw_importance", "draw_waterfall"]


def draw_importance(layout: ImportanceLayout, *, title: str = "Importance") -> Any:
    """Draw how much every contribution varies, split into own value and context."""
    go, bars = graph(), layout.bars
    figure = new_figure(title=title, note=layout.note, height=max(300, 160 + 26 * len(bars)))
    places = list(range(len(bars)))
    figure.add_trace(
        go.Bar(
            x=[bar.own for bar in bars],
            y=places,
            orientation="h",
            name="its own value decides",
            marker={"color": STYLE.main},
        )
    )
    decimals = decimals_for(max((bar.importance for bar in bars), default=0.0))
    figure.add_trace(
        go.Bar(
            x=[bar.importance - bar.own for bar in bars],
            y=places,
            orientation="h",
            name="context decides",
            marker={"color": STYLE.accent_soft, "pattern": _hatch(STYLE.accent_soft)},
            text=[_words(bar.importance, bar.additivity, bar.stability, decimals) for bar in bars],
            textposition="outside",
            cliponaxis=False,
        )
    )
    figure.update_layout(barmode="stack", bargap=0.3)
    set_places(figure, "y", [bar.name for bar in bars], limit=28)
    label = layout.label
    if layout.rest[0]:
        label += f" · {layout.rest[0]} more features, each at most {format_fixed(layout.rest[1], decimals)}"
    longest = max((bar.importance for bar in bars), default=0.0) or 1.0
    figure.update_xaxes(title={"text": plain(label, 140)}, range=[0, 1.6 * longest])
    return figure


def draw_waterfall(layout: WaterfallLayout) -> Any:
    """Draw the way from the intercept to the score of one row."""
    go, steps = graph(), layout.steps
    figure = new_figure(title=layout.title, note=layout.note, height=200 + 34 * len(steps))
    places = list(range(len(steps)))
    hover = [
        f"{plain(step.label)}<br>total {step.contribution}<br>own {step.own}<br>context {step.shift}"
        + (f"<br>mostly because of {plain(step.cause)}" if step.cause else "")
        for step in steps
    ]
    for word, spans, colours, is_hatched in (
        ("own effect", [step.kept for step in steps], [_own_colour(step) for step in steps], False),
        ("because of context", [(s.own_end, s.end) for s in steps], [_shift_colour(s) for s in steps], True),
    ):
        figure.add_trace(
            go.Bar(
                x=[end - start for start, end in spans],
                base=[start for start, _ in spans],
                y=places,
                orientation="h",
                name=word,
                marker={"color": colours, "pattern": _hatch(colours) if is_hatched else {}},
                hovertext=hover,
                hoverinfo="text",
            )
        )
    figure.add_trace(_totals(steps, hover))
    figure.add_vline(x=layout.base, line={"color": STYLE.soft, "dash": "dash", "width": 1})
    figure.add_vline(x=layout.score, line={"color": STYLE.ink, "width": 1})
    figure.update_layout(barmode="overlay", bargap=0.35)
    set_places(figure, "y", [step.label for step in steps], limit=34)
    figure.update_xaxes(title={"text": plain(layout.label, 80)}, range=list(layout.x_range))
    return figure


def _totals(steps: Sequence[Step], hover: list[str]) -> Any:
    """Return where every step ends, with its bounds."""
    return graph().Scatter(
        x=[step.end for step in steps],
        y=list(range(len(steps))),
        mode="markers",
        marker={"symbol": "line-ns", "size": 16, "line": {"width": 1.5, "color": STYLE.ink}},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [step.upper - step.end for step in steps],
            "arrayminus": [step.end - step.lower for step in steps],
            "color": STYLE.soft,
            "thickness": 1,
            "width": 4,
        },
        name="total, with guaranteed bounds",
        hovertext=hover,
        hoverinfo="text",
    )


def _hatch(colour: str | list[str]) -> dict[str, Any]:
    return {"shape": "/", "bgcolor": colour, "fgcolor": STYLE.paper, "solidity": 0.25, "size": 7}


def _own_colour(step: Step) -> str:
    return STYLE.positive if step.own_end >= step.start else STYLE.negative


def _shift_colour(step: Step) -> str:
    return STYLE.accent_soft if step.end >= step.own_end else STYLE.band


def _words(importance: float, additivity: float, stability: float | None, decimals: int) -> str:
    words = f"{format_fixed(importance, decimals)} · {100 * additivity:.0f} % own"
    return words if stability is None else f"{words} · stability {stability:.2f}"
