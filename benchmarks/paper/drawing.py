"""Figures in the house style, from explanations and from numbers."""

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


@dataclass(frozen=True, eq=False)
class Panel:
    """One feature of one model."""

    title: str
    note: str
    explanation: GlobalExplanation
    feature: str
    truth: tuple[Callable[[NDArray[Any]], NDArray[Any]], ...] = ()
    """Curves that the feature truly follows, drawn dashed."""


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
    """Return small shape plots side by side, on one scale unless told otherwise."""
    layouts: list[ShapeLayout] = []
    for panel in panels:
        layout = lay_out_shape(panel.explanation, panel.feature, unit=unit)
        layouts.append(replace(layout, title=panel.title, note=panel.note))
    if share_scale:
        low, high = min(one.y_range[0] for one in layouts), max(one.y_range[1] for one in layouts)
        layouts = [replace(one, y_range=(low, high)) for one in layouts]
    figure = draw_shapes(tuple(layouts), title=title, n_columns=n_columns)
    for panel, layout, ax in zip(panels, layouts, figure.axes, strict=False):
        for truth in panel.truth:
            x = np.linspace(*layout.x_range, 240)
            ax.plot(x, truth(x), color=STYLE.accent, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2.5)
    return figure


def draw_curves(
    panels: Sequence[tuple[str, Sequence[Curve]]], *, x_label: str, y_label: str, title: str = "", is_log: bool = False
) -> Any:
    """Return lines side by side; those of the paper are grey and dashed."""
    figure, axes = new_page(len(panels), n_columns=len(panels), panel=(3.6, 2.9))
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
        ax.set_xlabel(x_label, fontsize="small", color=STYLE.ink)
        ax.set_ylabel("" if at else y_label, fontsize="small", color=STYLE.ink)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=4, frameon=False, fontsize="small")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize="large", fontweight="bold", color=STYLE.ink)
    return figure
