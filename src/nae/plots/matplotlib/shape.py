"""Shape plots: one feature, a page of them, and two models side by side."""

from typing import TYPE_CHECKING, Any

import numpy as np

from nae.plots.layouts.lines import CompareLayout
from nae.plots.layouts.shape import ShapeLayout
from nae.plots.matplotlib.canvas import compact_ticks, new_axes, new_page, set_legend, set_title, tidy
from nae.plots.style import STYLE, format_value, shorten, shorten_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_compare", "draw_shape", "draw_shapes"]

_SURE = (0, (4, 2))  # a line that is estimated; bounds are areas
_ROOM = 0.09  # share of the axes' width for each value that is not a number


def draw_shape(layout: ShapeLayout, ax: "Axes | None" = None, *, has_legend: bool = True) -> "Axes":
    """Draw the effect of one feature."""
    height = 3.6 if layout.is_number else max(2.2, 1.1 + 0.24 * len(layout.levels))
    ax = new_axes(ax, (5.6, height))
    if layout.is_number:
        _draw_number(ax, layout)
    else:
        _draw_levels(ax, layout, width=24 if has_legend else 15)
    set_title(ax, shorten(layout.title, 44), layout.note)
    if has_legend:
        set_legend(
            ax, _handles((layout,)), drop=24 if layout.is_number else 38, n_columns=None if layout.is_number else 2
        )
    return ax


def draw_shapes(
    layouts: tuple[ShapeLayout, ...], *, title: str = "", n_columns: int = 3, figure: "Figure | None" = None
) -> "Figure":
    """Draw a page of features."""
    figure, axes = new_page(len(layouts), n_columns=n_columns, panel=(3.3, 2.7), figure=figure)
    for at, (layout, ax) in enumerate(zip(layouts, axes, strict=True)):
        draw_shape(layout, ax, has_legend=False)
        if layout.is_number and at % n_columns:
            ax.set_ylabel("")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize="large", fontweight="bold", color=STYLE.ink)
    figure.legend(
        handles=_handles(layouts), loc="outside lower left", ncols=4, frameon=False, fontsize="small", handlelength=1.6
    )
    return figure


def draw_compare(layouts: tuple[CompareLayout, ...], *, n_columns: int = 3, figure: "Figure | None" = None) -> "Figure":
    """Draw the effects of two models over each other, feature by feature."""
    figure, axes = new_page(len(layouts), n_columns=n_columns, panel=(3.3, 2.6), figure=figure)
    lines = _lines()
    for at, (layout, ax) in enumerate(zip(layouts, axes, strict=True)):
        for which, (shape, colour) in enumerate(zip((layout.first, layout.second), _pair_colours(), strict=True)):
            if shape.is_number:
                ax.fill_between(shape.x, shape.lower, shape.upper, color=colour, alpha=0.14, linewidth=0)
                ax.plot(shape.x, shape.mean, color=colour, linewidth=1.8, linestyle=("-", "--")[which])
                ax.set_xlim(*shape.x_range)
                compact_ticks(ax, "x")
            else:
                _compare_levels(ax, layout, which, colour)
        if layout.first.is_number:
            ax.set_ylim(*layout.y_range)
            ax.axhline(0, color=STYLE.soft, linewidth=0.7, zorder=0.6)
            tidy(ax)
            if at % n_columns == 0:
                ax.set_ylabel(layout.first.effect_label, fontsize="small", color=STYLE.ink, parse_math=False)
        else:
            tidy(ax, grid="x")
            ax.set_xlim(*layout.y_range)
            ax.axvline(0, color=STYLE.soft, linewidth=0.7, zorder=0.6)
        sizes = " · ".join(f"{name}: {size:.2g}" for name, size in zip(layout.names, layout.importances, strict=True))
        set_title(ax, shorten(layout.first.title, 30), f"importance, {sizes}")
    handles = [
        lines.Line2D([], [], color=colour, linewidth=2, linestyle=style, label=name)
        for colour, style, name in zip(_pair_colours(), ("-", "--"), layouts[0].names, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize="small")
    return figure


def _pair_colours() -> tuple[str, str]:
    return STYLE.main, STYLE.accent


def _compare_levels(ax: "Axes", layout: CompareLayout, which: int, colour: str) -> None:
    shape = (layout.first, layout.second)[which]
    order = [level.label for level in layout.first.levels]
    shown = [level for level in shape.levels if level.label in order]
    y = np.array([order.index(level.label) for level in shown]) + (-0.16, 0.16)[which]
    for at, level in zip(y, shown, strict=True):
        ax.plot([level.lower, level.upper], [at, at], color=colour, alpha=0.3, linewidth=4, solid_capstyle="butt")
    ax.plot([level.mean for level in shown], y, "o" if which == 0 else "D", color=colour, markersize=3.6)
    ax.set_yticks(range(len(order)), shorten_all(order, 18), parse_math=False)
    ax.set_ylim(len(order) - 0.4, -0.6)


def _draw_number(ax: "Axes", layout: ShapeLayout) -> None:
    x = layout.x
    left, right = layout.x_range
    for bar in layout.density:
        ax.bar(
            bar.left, 0.2 * bar.height, bar.right - bar.left, align="edge", color=STYLE.density, linewidth=0,
            transform=ax.get_xaxis_transform(), zorder=0.5,
        )  # fmt: skip
    ax.axhline(0, color=STYLE.soft, linewidth=0.7, zorder=1)
    ax.fill_between(x, layout.lower, layout.upper, color=STYLE.band, alpha=0.45, linewidth=0, zorder=1.5)
    for bound in (layout.lower, layout.upper):
        ax.plot(x, bound, color=STYLE.inner, linewidth=0.7, zorder=1.6)
    if len(layout.dots):
        ax.scatter(
            layout.dots_at, layout.dots, s=5, color=STYLE.dot, alpha=0.35, linewidths=0, zorder=2, rasterized=True
        )
    else:
        ax.fill_between(x, layout.low, layout.high, color=STYLE.inner, alpha=0.5, linewidth=0, zorder=2)
    for end in layout.sure:
        ax.plot(x, end, color=STYLE.sure, linewidth=1.1, linestyle=_SURE, zorder=2.5)
    style: dict[str, Any] = {"marker": "o", "markersize": 3.5} if layout.is_few else {}
    ax.plot(x, layout.mean, color=STYLE.main, linewidth=1.9, zorder=3, **style)
    room = (right - left) * _ROOM
    edge = right + (0.04 if layout.is_few else 0.02) * (right - left)
    if layout.levels:
        ax.axvline(edge, color=STYLE.faint, linewidth=0.8, zorder=0.6)
        for at, level in enumerate(layout.levels):
            _draw_special(ax, level, edge + room * (at + 0.6), 0.3 * room, layout)
        edge += room * (len(layout.levels) + 0.2)
    ax.set_xlim(left - 0.02 * (right - left), max(edge, right + 0.02 * (right - left)))
    ax.set_ylim(*layout.y_range)
    ax.set_ylabel(layout.effect_label, fontsize="small", color=STYLE.ink, parse_math=False)
    tidy(ax)
    compact_ticks(ax, "x", is_whole=layout.is_whole)
    if layout.ticks:
        ax.set_xticks(layout.ticks, [format_value(tick) for tick in layout.ticks])
    elif layout.levels:  # no ticks under values that are not numbers
        ax.set_xticks([tick for tick in ax.get_xticks() if left <= tick <= right])


def _draw_special(ax: "Axes", level: Any, x: float, half: float, layout: ShapeLayout) -> None:
    """Draw *missing* next to a number, with the same band, line and spread."""
    ax.fill_between([x - half, x + half], level.lower, level.upper, color=STYLE.band, alpha=0.45, linewidth=0)
    ax.fill_between([x - half, x + half], level.low, level.high, color=STYLE.inner, alpha=0.5, linewidth=0)
    ax.plot([x, x], level.sure, color=STYLE.sure, linewidth=1.1, linestyle=_SURE, marker="_", markersize=6)
    ax.plot([x - half, x + half], [level.mean, level.mean], color=STYLE.main, linewidth=1.9)
    ax.annotate(
        f"{level.label}\n{_percent(level.share)}", (x, 0), (0, -4), xycoords=ax.get_xaxis_transform(),
        textcoords="offset points", ha="center", va="top", fontsize="x-small", color=STYLE.soft, annotation_clip=False,
    )  # fmt: skip


def _draw_levels(ax: "Axes", layout: ShapeLayout, *, width: int) -> None:
    levels = layout.levels
    y = np.arange(len(levels), dtype=np.float64)
    top = max((level.share for level in levels), default=1.0) or 1.0
    ax.barh(
        y, [0.2 * level.share / top for level in levels], height=0.86, color=STYLE.density, linewidth=0,
        transform=ax.get_yaxis_transform(), zorder=0.5,
    )  # fmt: skip
    ax.axvline(0, color=STYLE.soft, linewidth=0.7, zorder=1)
    lower = np.array([level.lower for level in levels])
    upper = np.array([level.upper for level in levels])
    ax.barh(y, upper - lower, left=lower, height=0.62, color=STYLE.band, alpha=0.55, linewidth=0, zorder=1.5)
    if len(layout.dots):
        jitter = ((np.arange(len(layout.dots)) * 0.618034) % 1 - 0.5) * 0.5  # the golden ratio spreads evenly
        ax.scatter(
            layout.dots,
            layout.dots_at + jitter,
            s=4,
            color=STYLE.dot,
            alpha=0.35,
            linewidths=0,
            zorder=2,
            rasterized=True,
        )
    else:
        low = np.array([level.low for level in levels])
        high = np.array([level.high for level in levels])
        ax.barh(y, high - low, left=low, height=0.34, color=STYLE.inner, alpha=0.8, linewidth=0, zorder=2)
    for at, level in zip(y, levels, strict=True):
        ax.plot(level.sure, [at, at], color=STYLE.sure, linewidth=1.1, linestyle=_SURE, marker="|", zorder=2.5)
        ax.plot([level.mean, level.mean], [at - 0.34, at + 0.34], color=STYLE.main, linewidth=2.2, zorder=3)
    _name_levels(ax, layout, width=width)


def _name_levels(ax: "Axes", layout: ShapeLayout, *, width: int) -> None:
    """Write names at the left and shares of the rows at the right."""
    levels, y = layout.levels, range(len(layout.levels))
    small = "x-small" if len(levels) > 14 else "small"
    ax.set_yticks(y, shorten_all([level.label for level in levels], width), fontsize=small, parse_math=False)
    for text, level in zip(ax.get_yticklabels(), levels, strict=True):
        text.set_fontstyle("normal" if level.role == "value" else "italic")
    for at, level in zip(y, levels, strict=True):
        ax.annotate(
            _percent(level.share), (1, at), (3, 0), xycoords=ax.get_yaxis_transform(), textcoords="offset points",
            va="center", ha="left", fontsize="xx-small", color=STYLE.soft, annotation_clip=False,
        )  # fmt: skip
    ax.set_ylim(len(levels) - 0.4, -0.6)
    ax.set_xlim(*layout.y_range)
    ax.set_xlabel(layout.effect_label, fontsize="small", color=STYLE.ink, parse_math=False)
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0, labelsize=small)


def _percent(share: float) -> str:
    if share == 0:
        return "no rows"
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %" if share >= 0.001 else "< 0.1 %"


def _lines() -> Any:
    from matplotlib import lines

    return lines


def _handles(layouts: tuple[ShapeLayout, ...]) -> list[Any]:
    """Return the legend entries for everything that any of the layouts shows."""
    from matplotlib import lines, patches

    handles: list[Any] = [lines.Line2D([], [], color=STYLE.main, linewidth=2, label="mean effect")]
    if any(len(one.dots) for one in layouts):
        handles.append(lines.Line2D([], [], color=STYLE.dot, marker="o", linewidth=0, markersize=3, label="rows"))
    elif any(one.has_spread for one in layouts):
        handles.append(patches.Patch(color=STYLE.inner, alpha=0.6, linewidth=0, label="90 % of rows"))
    if any(one.has_bounds for one in layouts):
        handles.append(patches.Patch(color=STYLE.band, alpha=0.55, linewidth=0, label="guaranteed bounds"))
    sure = next((one.sure_label for one in layouts if one.sure_label), "")
    if sure:
        handles.append(lines.Line2D([], [], color=STYLE.sure, linewidth=1.1, linestyle=_SURE, label=sure))
    return [*handles, patches.Patch(color=STYLE.density, linewidth=0, label="share of rows")]
