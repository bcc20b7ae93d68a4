"""Importance bars and the waterfall of one row."""

from typing import TYPE_CHECKING, Any

from nae.explanation.shapes import NOISE
from nae.plots.layouts.bars import ImportanceLayout, Step, WaterfallLayout
from nae.plots.matplotlib.canvas import new_axes, set_legend, set_title, tidy
from nae.plots.style import STYLE, decimals_for, format_fixed, part_colour, shorten, shorten_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_importance", "draw_waterfall"]

_COLUMNS = (46.0, 88.0, 132.0, 142.0)  # points right of the axes: total, own, context, cause


def draw_importance(layout: ImportanceLayout, ax: "Axes | None" = None, *, title: str = "Importance") -> "Axes":
    """Draw how much every contribution varies, divided into own effect and context."""
    from matplotlib import patches

    bars = layout.bars
    longest = max((bar.importance for bar in bars), default=0.0)
    decimals = decimals_for(longest)
    ax = new_axes(ax, (6.2, max(2.2, 1.4 + 0.27 * len(bars))))
    y = range(len(bars))
    ax.barh(y, [bar.own for bar in bars], height=0.68, color=STYLE.main, linewidth=0)
    ax.barh(
        y, [bar.importance - bar.own for bar in bars], left=[bar.own for bar in bars], height=0.68,
        color=STYLE.accent_soft, hatch="////", edgecolor=STYLE.paper, linewidth=0,
    )  # fmt: skip
    for at, bar in enumerate(bars):
        words = f"{format_fixed(bar.importance, decimals)}  ·  {100 * bar.additivity:.0f} % own"
        if bar.stability is not None:
            words += f"  ·  stability {bar.stability:.2f}"
        if bar.is_noise:
            words += f"  ·  {NOISE}"
        ax.annotate(
            words, (bar.importance, at), (4, 0), textcoords="offset points", va="center", fontsize="x-small",
            color=STYLE.soft,
        )  # fmt: skip
    names = shorten_all([bar.name for bar in bars], 28)
    ax.set_yticks(y, names, parse_math=False)
    ax.set_ylim(len(bars) - 0.4, -0.6)
    room = 1.45 if max(map(len, names), default=0) <= 18 else 1.75  # room for the text behind the bars
    ax.set_xlim(0, room * longest or 1.0)
    label = layout.label
    if layout.rest[0]:
        label += f"\n{layout.rest[0]} more features, each at most {format_fixed(layout.rest[1], decimals)}"
    ax.set_xlabel(label, fontsize="small", color=STYLE.ink, parse_math=False)
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0, labelsize="small")
    set_title(ax, title, layout.note)
    handles = [patches.Patch(facecolor=STYLE.main, label="explained by its own value")]
    if layout.has_context:
        context = patches.Patch(
            facecolor=STYLE.accent_soft, hatch="////", edgecolor=STYLE.paper, label="context decides"
        )
        handles.append(context)
    set_legend(ax, handles, drop=52 if layout.rest[0] else 38)
    return ax


def draw_waterfall(layout: WaterfallLayout, ax: "Axes | None" = None) -> "Axes":
    """Draw the steps from the intercept to the score of one row."""
    steps, last = layout.steps, len(layout.steps) - 1
    ax = new_axes(ax, (8.4, 1.8 + 0.38 * len(steps)))
    columns = _COLUMNS if layout.has_context else _COLUMNS[:1]
    for at, step in enumerate(steps):
        _draw_step(ax, at, step, layout)
        ax.plot(
            [step.end, step.end],
            [at - 0.3, at + (0.3 if at == last else 0.7)],
            color=STYLE.ink,
            linewidth=1.1,
            zorder=3,
        )
        for place, text in zip(columns, (step.contribution, step.own, step.shift, step.cause), strict=False):
            _write(ax, at, place, shorten(text, 26), is_bold=place == _COLUMNS[0])
    for place, text in zip(columns, ("total", "own", "context", "mostly because of"), strict=False):
        _write(ax, -0.55, place, text, is_soft=True)  # below the note, which may be wider than the axes
    ax.axvline(layout.base, color=STYLE.soft, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0.5)
    ax.set_xlim(*layout.x_range)
    ax.set_ylim(last + 0.95, -0.75)
    _mark(ax, layout.base, -0.6, f"{layout.base_name} {format_fixed(layout.base, layout.decimals)}", layout)
    ax.plot([layout.score] * 2, [last + 0.3, last + 0.95], color=STYLE.ink, linewidth=1.1)
    _mark(
        ax,
        layout.score,
        last + 0.68,
        f"{layout.score_name} {format_fixed(layout.score, layout.decimals)}",
        layout,
        is_bold=True,
    )
    ax.set_yticks(range(len(steps)), shorten_all([step.label for step in steps], 34), parse_math=False)
    ax.set_xlabel(layout.label, fontsize="small", color=STYLE.ink, parse_math=False)
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0, labelsize="small")
    set_title(ax, layout.title, layout.note)
    set_legend(ax, _waterfall_handles(layout), drop=38)
    return ax


def _draw_step(ax: "Axes", at: int, step: Step, layout: WaterfallLayout) -> None:
    """Draw the own effect as a plain bar, the context shift as a hatched bar, and the bounds."""
    if layout.has_bounds:
        ax.plot([step.lower, step.upper], [at, at], color=STYLE.soft, linewidth=1.0, zorder=1.2)
        for end in (step.lower, step.upper):
            ax.plot([end, end], [at - 0.12, at + 0.12], color=STYLE.soft, linewidth=1.0, zorder=1.2)
    for part in layout.parts(step):
        size = part.end - part.start
        colour = part_colour(size, is_context=part.is_context)
        ax.barh(
            at + part.middle, size, left=part.start, height=part.height, color=colour, linewidth=0, zorder=2,
            hatch="/////" if part.is_context else None, edgecolor=STYLE.paper,
        )  # fmt: skip


def _waterfall_handles(layout: WaterfallLayout) -> list[Any]:
    """Return the legend entries for everything that is shown."""
    from matplotlib import lines, patches

    own = "own value " if layout.has_context else ""
    handles: list[Any] = [
        patches.Patch(facecolor=STYLE.positive, label=f"{own}raises"),
        patches.Patch(facecolor=STYLE.negative, label=f"{own}lowers"),
    ]
    if layout.has_context:
        handles += [
            patches.Patch(facecolor=STYLE.accent_soft, hatch="/////", edgecolor=STYLE.paper, label="context raises"),
            patches.Patch(facecolor=STYLE.band, hatch="/////", edgecolor=STYLE.paper, label="context lowers"),
        ]
    if layout.has_bounds:
        handles.append(lines.Line2D([], [], color=STYLE.soft, linewidth=1, label="guaranteed bounds"))
    return handles


def _write(ax: "Axes", at: float, place: float, text: str, *, is_bold: bool = False, is_soft: bool = False) -> None:
    """Write into a column to the right of the axes; the first three columns are right-aligned."""
    ax.annotate(
        text, (1, at), (place, 0), xycoords=ax.get_yaxis_transform(), textcoords="offset points", va="center",
        ha="left" if place == _COLUMNS[-1] else "right", fontsize="x-small" if is_soft else "small",
        fontweight="bold" if is_bold else "normal", color=STYLE.soft if is_soft else STYLE.ink, annotation_clip=False,
        parse_math=False,
    )  # fmt: skip


def _mark(ax: "Axes", x: float, y: float, text: str, layout: WaterfallLayout, *, is_bold: bool = False) -> None:
    """Write next to a vertical line, on the side with more room."""
    is_left = x > (layout.x_range[0] + layout.x_range[1]) / 2
    ax.annotate(
        text, (x, y), (-4 if is_left else 4, 0), textcoords="offset points", ha="right" if is_left else "left",
        va="center", fontsize="small" if is_bold else "x-small", fontweight="bold" if is_bold else "normal",
        color=STYLE.ink if is_bold else STYLE.soft,
    )  # fmt: skip
