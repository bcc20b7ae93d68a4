"""The dial's frontier and training curves."""

from typing import Any

import numpy as np

from nae.plots.layouts.lines import FrontierLayout, TrainingLayout
from nae.plots.plotly.canvas import graph, new_figure, plain
from nae.plots.style import STYLE

__all__ = ["draw_frontier", "draw_training"]

_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")


def draw_frontier(layout: FrontierLayout, *, title: str = "Score against additivity") -> Any:
    """Draw the score of models against their additivity."""
    figure = new_figure(title=title, note=layout.note)
    if layout.beaten:
        x, y = [point.additivity for point in layout.beaten], [point.score for point in layout.beaten]
        marker = {"color": STYLE.soft, "size": 6, "opacity": 0.5}
        figure.add_trace(graph().Scatter(x=x, y=y, mode="markers", marker=marker, showlegend=False))
    for at, (name, points) in enumerate(layout.series):
        figure.add_trace(
            graph().Scatter(
                x=[point.additivity for point in points],
                y=[point.score for point in points],
                error_y={"type": "data", "array": [point.error for point in points], "thickness": 1.2},
                mode="lines+markers+text",
                text=[plain(point.label, 18) for point in points],
                textposition="top center",
                line={"color": STYLE.series[at % len(STYLE.series)]},
                marker={
                    "symbol": _SYMBOLS[at % len(_SYMBOLS)],
                    "size": [14 if point.is_chosen else 8 for point in points],
                    "line": {"color": STYLE.ink, "width": [2 if point.is_chosen else 0 for point in points]},
                },
                name=plain(name),
                showlegend=bool(name),
            )
        )
    figure.update_xaxes(title={"text": layout.x_label})
    figure.update_yaxes(title={"text": plain(layout.y_label)})
    return figure


def draw_training(layout: TrainingLayout, *, title: str = "Training") -> Any:
    """Draw loss, validation loss and additivity by epoch."""
    figure = new_figure(title=title, note=layout.note)
    curves = [
        ("training loss", layout.loss, {"color": STYLE.soft, "dash": "dash"}, "y"),
        ("validation loss", layout.validation, {"color": STYLE.main, "width": 2.5}, "y"),
        ("additivity (right)", layout.additivity, {"color": STYLE.accent, "dash": "dot"}, "y2"),
    ]
    for name, values, line, axis in curves:
        is_known = np.isfinite(values)  # validation and additivity are measured every few epochs
        if is_known.any():
            x, y = layout.epochs[is_known], values[is_known]
            figure.add_trace(graph().Scatter(x=x, y=y, mode="lines", line=line, name=name, yaxis=axis))
    if layout.best_epoch:
        figure.add_vline(x=layout.best_epoch, line={"color": STYLE.soft, "width": 1})
    figure.update_layout(
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "range": [0, 1.02],
            "dtick": 0.2,
            "showgrid": False,
            "automargin": True,
        }
    )
    figure.update_xaxes(title={"text": "epoch"})
    figure.update_layout(yaxis={"title": {"text": "loss"}})
    return figure
