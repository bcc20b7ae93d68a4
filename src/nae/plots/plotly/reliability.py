"""Reliability curves."""

from typing import Any

import numpy as np

from nae.plots.layouts.reliability import ReliabilityLayout
from nae.plots.plotly.canvas import graph, new_figure, plain
from nae.plots.style import STYLE

__all__ = ["draw_reliability"]


def draw_reliability(layout: ReliabilityLayout, *, title: str = "Reliability") -> Any:
    """Draw predicted against actual shares: on the diagonal, probabilities are true."""
    figure = new_figure(title=title, note=layout.note)
    end = [0, layout.highest]
    line = {"color": STYLE.soft, "width": 1, "dash": "dash"}
    figure.add_trace(graph().Scatter(x=end, y=end, mode="lines", line=line, showlegend=False))
    figure.add_trace(
        graph().Scatter(
            x=layout.predicted,
            y=layout.actual,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": np.maximum(layout.upper - layout.actual, 0.0),
                "arrayminus": np.maximum(layout.actual - layout.lower, 0.0),
                "thickness": 1.4,
                "color": STYLE.main,
            },
            mode="lines+markers",
            line={"color": STYLE.inner, "width": 1.5},
            marker={
                "size": 8,
                "color": [STYLE.accent if is_off else STYLE.main for is_off in layout.is_off],
                "symbol": ["square" if is_off else "circle" for is_off in layout.is_off],
            },
            showlegend=False,
        )
    )
    figure.update_xaxes(title={"text": plain(layout.x_label)}, range=end)
    figure.update_yaxes(title={"text": layout.y_label}, range=end)
    return figure
