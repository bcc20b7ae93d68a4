"""Reliability curves."""

from typing import TYPE_CHECKING

import numpy as np

from nae.plots.layouts.reliability import ReliabilityLayout
from nae.plots.matplotlib.canvas import new_axes, set_legend, set_title, tidy
from nae.plots.style import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_reliability"]


def draw_reliability(layout: ReliabilityLayout, ax: "Axes | None" = None, *, title: str = "Reliability") -> "Axes":
    """Draw predicted against actual shares: on the diagonal, probabilities are true."""
    ax = new_axes(ax, (4.8, 4.4))
    end = layout.highest
    ax.plot([0, end], [0, end], color=STYLE.soft, linewidth=1.0, linestyle="--", zorder=1)
    for is_off, colour, name in (
        (False, STYLE.main, "agree within 95 %"),
        (True, STYLE.accent, "differ"),
    ):
        kept = layout.is_off == is_off
        if not kept.any():
            continue
        x, y = layout.predicted[kept], layout.actual[kept]
        errors = np.stack([y - layout.lower[kept], layout.upper[kept] - y])
        ax.errorbar(
            x, y, yerr=np.maximum(errors, 0.0), color=colour, marker="s" if is_off else "o", markersize=5,
            linewidth=0, elinewidth=1.4, capsize=2.5, label=name, zorder=3,
        )  # fmt: skip
    ax.plot(layout.predicted, layout.actual, color=STYLE.inner, linewidth=1.2, zorder=2)
    ax.set_xlim(0, end)
    ax.set_ylim(0, end)
    ax.set_aspect("equal")
    ax.set_xlabel(layout.x_label, fontsize="small", color=STYLE.ink, parse_math=False)
    ax.set_ylabel(layout.y_label, fontsize="small", color=STYLE.ink)
    tidy(ax, grid="both")
    set_title(ax, title, layout.note)
    set_legend(ax, ax.get_legend_handles_labels()[0], drop=38)
    return ax
