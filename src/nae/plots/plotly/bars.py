"""Importance bars and the waterfall of one row."""

from typing import Any

from nae.explanation.shapes import NOISE
from nae.plots.layouts.bars import ImportanceBar, ImportanceLayout, WaterfallLayout
from nae.plots.plotly.canvas import graph, new_figure, plain, set_places
from nae.plots.style import STYLE, decimals_for, format_fixed, part_colour

__all__ = ["draw_importance", "draw_waterfall"]


def draw_importance(layout: ImportanceLayout, *, title: str = "Importance") -> Any:
    """Draw how much every contribution varies, divided into own effect and context."""
    go, bars = graph(), layout.bars
    figure = new_figure(title=title, note=layout.note, height=max(300, 160 + 26 * len(bars)))
    places = list(range(len(bars)))
    figure.add_trace(
        go.Bar(
            x=[bar.own for bar in bars],
            y=places,
            orientation="h",
            name="explained by its own value",
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
            showlegend=layout.has_context,
            marker={"color": STYLE.accent_soft, "pattern": _hatch(STYLE.accent_soft)},
            text=[_words(bar, decimals) for bar in bars],
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
    """Draw the steps from the intercept to the score of one row."""
    go, steps = graph(), layout.steps
    figure = new_figure(title=layout.title, note=layout.note, height=200 + 34 * len(steps))
    places = list(range(len(steps)))
    hover = [
        f"{plain(step.label)}<br>total {step.contribution}"
        + (f"<br>own {step.own}<br>context {step.shift}" if layout.has_context else "")
        + (f"<br>mostly because of {plain(step.cause)}" if step.cause else "")
        for step in steps
    ]
    for parts in zip(*map(layout.parts, steps), strict=True):
        colours = [part_colour(part.end - part.start, is_context=part.is_context) for part in parts]
        figure.add_trace(
            go.Bar(
                x=[part.end - part.start for part in parts],
                base=[part.start for part in parts],
                y=[place + part.middle for place, part in zip(places, parts, strict=True)],
                width=[part.height for part in parts],
                orientation="h",
                name="because of context" if parts[0].is_context else "own effect",
                marker={"color": colours, "pattern": _hatch(colours) if parts[0].is_context else {}},
                hovertext=hover,
                hoverinfo="text",
            )
        )
    figure.add_trace(_totals(layout, hover))
    figure.add_vline(x=layout.base, line={"color": STYLE.soft, "dash": "dash", "width": 1})
    figure.add_vline(x=layout.score, line={"color": STYLE.ink, "width": 1})
    figure.update_layout(barmode="overlay")
    set_places(figure, "y", [step.label for step in steps], limit=34)
    figure.update_xaxes(title={"text": plain(layout.label, 80)}, range=list(layout.x_range))
    return figure


def _totals(layout: WaterfallLayout, hover: list[str]) -> Any:
    """Return the end of every step with its bounds."""
    steps = layout.steps
    bounds = {
        "type": "data",
        "symmetric": False,
        "array": [step.upper - step.end for step in steps],
        "arrayminus": [step.end - step.lower for step in steps],
        "color": STYLE.soft,
        "thickness": 1,
        "width": 4,
    }
    return graph().Scatter(
        x=[step.end for step in steps],
        y=list(range(len(steps))),
        mode="markers",
        marker={"symbol": "line-ns", "size": 16, "line": {"width": 1.5, "color": STYLE.ink}},
        error_x=bounds if layout.has_bounds else None,
        name="total, with guaranteed bounds" if layout.has_bounds else "total",
        hovertext=hover,
        hoverinfo="text",
    )


def _hatch(colour: str | list[str]) -> dict[str, Any]:
    return {"shape": "/", "bgcolor": colour, "fgcolor": STYLE.paper, "solidity": 0.25, "size": 7}


def _words(bar: ImportanceBar, decimals: int) -> str:
    words = f"{format_fixed(bar.importance, decimals)} · {100 * bar.additivity:.0f} % own"
    if bar.stability is not None:
        words += f" · stability {bar.stability:.2f}"
    return f"{words} · {NOISE}" if bar.is_noise else words
