"""The dial's frontier and training curves."""

from typing import TYPE_CHECKING

import numpy as np

from nae.plots.layouts.lines import FrontierLayout, TrainingLayout
from nae.plots.matplotlib.canvas import new_axes, set_legend, set_title, tidy
from nae.plots.style import STYLE, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_frontier", "draw_training"]

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def draw_frontier(
    layout: FrontierLayout, ax: "Axes | None" = None, *, title: str = "Score against additivity"
) -> "Axes":
    """Draw the score of models against their additivity."""
    ax = new_axes(ax, (5.6, 3.7))
    x, y = [point.additivity for point in layout.beaten], [point.score for point in layout.beaten]
    ax.plot(x, y, color=STYLE.soft, marker="o", markersize=4, linewidth=0, alpha=0.5, zorder=1)
    for at, (name, points) in enumerate(layout.series):
        colour = STYLE.series[at % len(STYLE.series)]
        x, y = [point.additivity for point in points], [point.score for point in points]
        errors = [point.error for point in points]
        if any(errors):
            ax.errorbar(x, y, yerr=errors, color=colour, linewidth=0, elinewidth=1.2, capsize=2.5, zorder=2)
        ax.plot(
            x, y, color=colour, marker=_MARKERS[at % 7], markersize=5.5, linewidth=1.6, label=shorten(name, 36) or None,
            zorder=3,
        )  # fmt: skip
        for point in points:
            if point.is_chosen:
                ax.plot(
                    [point.additivity], [point.score], marker="o", markersize=13, markerfacecolor="none",
                    markeredgecolor=STYLE.ink, markeredgewidth=1.6, zorder=4,
                )  # fmt: skip
            if point.label:
                ax.annotate(
                    shorten(point.label, 18), (point.additivity, point.score), (7, 7), textcoords="offset points",
                    ha="left", fontsize="x-small", color=STYLE.soft, parse_math=False,
                )  # fmt: skip
    ax.margins(x=0.06, y=0.14)
    ax.set_xlabel(layout.x_label, fontsize="small", color=STYLE.ink)
    ax.set_ylabel(layout.y_label, fontsize="small", color=STYLE.ink, parse_math=False)
    tidy(ax, grid="both")
    set_title(ax, title, layout.note)
    handles, _ = ax.get_legend_handles_labels()
    if any(name for name, _ in layout.series):
        set_legend(ax, handles, drop=38)
    return ax


def draw_training(layout: TrainingLayout, ax: "Axes | None" = None, *, title: str = "Training") -> "Axes":
    """Draw loss, validation loss and additivity by epoch."""
    from matplotlib.ticker import MaxNLocator

    ax = new_axes(ax, (5.6, 3.5))
    ax.plot(layout.epochs, layout.loss, color=STYLE.soft, linewidth=1.4, linestyle="--", label="training loss")
    # Validation and additivity are measured every few epochs; lines connect the measured points.
    is_known = np.isfinite(layout.validation)
    if is_known.any():
        x, y = layout.epochs[is_known], layout.validation[is_known]
        ax.plot(x, y, color=STYLE.main, linewidth=1.9, label="validation loss")
    if layout.best_epoch:
        ax.axvline(layout.best_epoch, color=STYLE.faint, linewidth=1.2, zorder=0.5)
        at = int(np.argmin(np.abs(layout.epochs - layout.best_epoch)))
        kept = layout.validation if np.isfinite(layout.validation[at]) else layout.loss
        ax.plot(layout.epochs[at], kept[at], "o", color=STYLE.main, markersize=6, label="kept")
    ax.set_xlabel("epoch", fontsize="small", color=STYLE.ink)
    ax.set_ylabel("loss", fontsize="small", color=STYLE.ink)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(ax)
    handles = ax.get_legend_handles_labels()[0]
    is_known = np.isfinite(layout.additivity)
    if is_known.any():
        twin = ax.twinx()
        (line,) = twin.plot(
            layout.epochs[is_known],
            layout.additivity[is_known],
            color=STYLE.accent,
            linewidth=1.4,
            linestyle=":",
            label="additivity (right)",
        )
        tidy(twin, grid=None)
        twin.spines["right"].set_visible(True)
        twin.spines["right"].set_color(STYLE.accent)
        twin.tick_params(colors=STYLE.accent, labelcolor=STYLE.accent)
        twin.set_ylim(0, 1.02)
        twin.set_ylabel("additivity", fontsize="small", color=STYLE.accent)
        handles = [*handles, line]
    set_title(ax, title, layout.note)
    set_legend(ax, handles, drop=38)
    return ax
