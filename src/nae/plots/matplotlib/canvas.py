"""Axes and figures in the library's style, without changing global settings."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nae._optional import require
from nae.plots.style import STYLE, format_compact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

__all__ = ["colour_map", "compact_ticks", "new_axes", "new_page", "set_legend", "set_note", "set_title", "tidy"]


def new_axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Return the given axes, or axes of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", extra="plots")
    return pyplot.figure(figsize=size, layout="constrained").add_subplot()  # type: ignore[no-any-return]


def new_page(
    n_panels: int, *, n_columns: int, panel: tuple[float, float], figure: "Figure | None" = None
) -> "tuple[Figure, list[Axes]]":
    """Return the given figure, or a new one, with one empty axes per panel."""
    n_columns = max(1, min(n_columns, n_panels))
    n_rows = math.ceil(n_panels / n_columns)
    if figure is None:
        from nae.plots.matplotlib.page import Page

        size = (panel[0] * n_columns, panel[1] * n_rows + 0.5)
        pyplot: Any = require("matplotlib.pyplot", extra="plots")
        figure = pyplot.figure(FigureClass=Page, figsize=size, layout="constrained")
    grid = figure.add_gridspec(n_rows, n_columns)
    return figure, [figure.add_subplot(grid[at // n_columns, at % n_columns]) for at in range(n_panels)]


def tidy(ax: "Axes", *, grid: str | None = "y") -> None:
    """Remove lines and ticks that carry no information."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(STYLE.soft)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(colors=STYLE.soft, labelcolor=STYLE.ink, width=0.8, length=3, labelsize="small")
    ax.set_axisbelow(True)
    ax.grid(visible=False)
    if grid is not None:
        ax.grid(visible=True, axis=grid, color=STYLE.faint, linewidth=0.6)  # type: ignore[arg-type]


def set_title(ax: "Axes", title: str, note: str = "") -> None:
    """Put a title at the left, and a smaller line below it."""
    ax.set_title(
        title,
        loc="left",
        fontsize="medium",
        fontweight="bold",
        color=STYLE.ink,
        pad=16 if note else 6,
        parse_math=False,
    )
    if note:
        set_note(ax, note)


def set_note(ax: "Axes", note: str) -> None:
    """Put a small line between title and axes."""
    text = ax.annotate(
        note,
        (0, 1),
        (0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize="x-small",
        color=STYLE.soft,
        va="bottom",
        ha="left",
        annotation_clip=False,
        parse_math=False,
    )
    text.set_in_layout(False)  # a long text may run over the edge rather than squeeze the axes


def set_legend(ax: "Axes", handles: Sequence[Any], *, drop: float, n_columns: int | None = None) -> None:
    """Put a legend ``drop`` points below the axes, in one line unless ``columns`` is given."""
    transforms: Any = require("matplotlib.transforms", extra="plots")
    moved = ax.transAxes + transforms.ScaledTranslation(0, -drop / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        handles=list(handles),
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=moved,
        ncols=n_columns or len(handles),
        frameon=False,
        fontsize="x-small",
        handlelength=1.4,
        columnspacing=1.2,
        borderaxespad=0,
    )


def compact_ticks(ax: "Axes", which: str, *, is_whole: bool = False) -> None:
    """Abbreviate large numbers of an axis and limit their count; label no fractions between whole numbers."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    ticker: Any = require("matplotlib.ticker", extra="plots")
    if is_whole:
        axis.set_major_locator(ticker.MaxNLocator(nbins=6, integer=True))
    if max(map(abs, axis.get_view_interval())) >= 1e4:
        axis.set_major_locator(ticker.MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: format_compact(value)))


def colour_map(stops: Sequence[str]) -> "LinearSegmentedColormap":
    """Return a colour map that interpolates the given colours."""
    colors: Any = require("matplotlib.colors", extra="plots")
    return colors.LinearSegmentedColormap.from_list("nae", list(stops))  # type: ignore[no-any-return]
