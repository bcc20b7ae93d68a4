"""Draw figures in the library's style, from explanations and from numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nae.explanation import GlobalExplanation
from nae.plots.layouts.shape import ShapeLayout, lay_out_shape
from nae.plots.matplotlib.canvas import new_page, set_title, tidy
from nae.plots.matplotlib.shape import draw_shapes
from nae.plots.style import STYLE

__all__ = ["Curve", "Panel", "draw_curves", "draw_panels"]

WINDOW = 13
"""Number of values in a running mean."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One feature of one model."""

    title: str
    note: str
    explanation: GlobalExplanation
    feature: str
    truth: tuple[Callable[[NDArray[Any]], NDArray[Any]], ...] = ()
    """The true curves of the feature, which are drawn dashed."""
    is_smoothed: bool = False
    """Whether to draw the mean as a running mean, because it is noisy if each value has few rows."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A line through points."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    is_paper: bool = False


def draw_panels(
    panels: Sequence[Panel], *, title: str, n_columns: int, unit: str | None = None, share_scale: bool = True
) -> Any:
    """Return small shape plots side by side, by default on one scale."""
    layouts: list[ShapeLayout] = []
    for panel in panels:
        layout = lay_out_shape(panel.explanation, panel.feature, unit=unit)
        mean = _running_mean(layout.mean) if panel.is_smoothed and len(layout.mean) > WINDOW else layout.mean
        layouts.append(replace(layout, title=panel.title, note=panel.note, mean=mean))
    if share_scale:
        low, high = min(one.y_range[0] for one in layouts), max(one.y_range[1] for one in layouts)
        layouts = [replace(one, y_range=(low, high)) for one in layouts]
    figure = draw_shapes(tuple(layouts), title=title, n_columns=n_columns)
    for panel, layout, ax in zip(panels, layouts, figure.axes, strict=False):
        for truth in panel.truth:
            x = np.linspace(*layout.x_range, 240)
            ax.plot(x, truth(x), color=STYLE.accent, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2.5)
    return figure


def _running_mean(values: NDArray[Any]) -> NDArray[Any]:
    """Return the mean over a window of neighbours, which is smaller at the ends."""
    ones = np.ones(WINDOW)
    return np.asarray(np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same"))


def draw_curves(
    panels: Sequence[tuple[str, Sequence[Curve]]],
    *,
    x_label: str | Sequence[str],
    y_label: str,
    is_log: bool = False,
    share_scale: bool = False,
) -> Any:
    """Return panels of lines side by side. The paper's lines are grey and dashed."""
    x_labels = [x_label] * len(panels) if isinstance(x_label, str) else list(x_label)
    size = (6.0, 3.6) if len(panels) == 1 else (3.6, 2.9)
    figure, axes = new_page(len(panels), n_columns=len(panels), panel=size)
    for at, ((name, curves), ax) in enumerate(zip(panels, axes, strict=True)):
        colours = iter(STYLE.series)
        for curve in curves:
            style: dict[str, Any] = {"color": STYLE.soft, "linestyle": (0, (4, 2))}
            if not curve.is_paper:
                style = {"color": next(colours)}
            ax.plot(curve.x, curve.y, marker="o", markersize=3.5, linewidth=1.6, label=curve.label, **style)
        if is_log:
            ax.set_yscale("log")
        tidy(ax)
        set_title(ax, name)
        ax.set_xlabel(x_labels[at], fontsize="small", color=STYLE.ink)
        ax.set_ylabel("" if at else y_label, fontsize="small", color=STYLE.ink)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=4, frameon=False, fontsize="small")
    if share_scale:
        limits = [ax.get_ylim() for ax in axes]
        for ax in axes:
            ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
    return figure
