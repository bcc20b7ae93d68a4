"""Maps of pairs, panels of three features, and the matrix of interactions."""

from typing import TYPE_CHECKING, Any

import numpy as np

from nae.plots.layouts.maps import MapAxis, MapLayout, MatrixLayout
from nae.plots.matplotlib.canvas import colour_map, compact_ticks, new_axes, new_page, set_title, tidy
from nae.plots.style import STYLE, decimals_for, format_fixed, format_value, shorten, shorten_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_map", "draw_matrix", "draw_panels"]


def draw_map(layout: MapLayout, ax: "Axes | None" = None, *, has_bar: bool = True) -> "Axes":
    """Draw what two features do together, as a colour map, or as lines if one of them has few values."""
    if layout.is_lines:
        return _draw_lines(layout, ax)
    ax = new_axes(ax, (6.0, 4.6))
    mesh = _draw_mesh(ax, layout)
    _set_axis(ax, layout.x, "x")
    _set_axis(ax, layout.y, "y")
    tidy(ax, grid=None)
    set_title(ax, shorten(layout.title, 52), layout.note)
    if has_bar:
        _add_bar(ax.figure, mesh, ax, layout.label)
    return ax


def draw_panels(
    layouts: tuple[MapLayout, ...], *, title: str = "", n_columns: int = 3, figure: "Figure | None" = None
) -> "Figure":
    """Draw one map per value of the third feature, all with the same colour scale."""
    figure, axes = new_page(len(layouts), n_columns=n_columns, panel=(3.1, 2.7), figure=figure)
    mesh = None
    for at, (layout, ax) in enumerate(zip(layouts, axes, strict=True)):
        mesh = _draw_mesh(ax, layout)
        _set_axis(ax, layout.x, "x")
        _set_axis(ax, layout.y, "y")
        tidy(ax, grid=None)
        set_title(ax, shorten(layout.title, 34))
        if at % n_columns:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
        if at + n_columns < len(layouts):
            ax.set_xlabel("")
    _add_bar(figure, mesh, axes, layouts[0].label)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize="large", fontweight="bold", color=STYLE.ink)
    return figure


def draw_matrix(
    layout: MatrixLayout, ax: "Axes | None" = None, *, title: str = "Which features change each other's effect"
) -> "Axes":
    """Draw the directed matrix: the features in columns change the effects of the features in rows."""
    n = len(layout.names)
    size = 2.6 + 0.36 * n
    ax = new_axes(ax, (size + 0.9, size))
    limit = max(float(layout.values.max()), 1e-12)
    shown = np.where(np.eye(n, dtype=bool), np.nan, layout.values)
    image = ax.imshow(shown, cmap=colour_map(STYLE.sequential), vmin=0, vmax=limit)
    ax.set_facecolor(STYLE.density)
    names = shorten_all(layout.names, 20)
    ax.set_xticks(range(n), names, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
    ax.set_yticks(range(n), names, parse_math=False)
    if n <= 14:
        decimals = max(decimals_for(limit) - 1, 0)
        for row, column in np.argwhere(~np.eye(n, dtype=bool)):
            value = float(layout.values[row, column])
            colour = STYLE.paper if value > 0.55 * limit else STYLE.ink
            ax.text(
                column, row, format_fixed(value, decimals), ha="center", va="center", fontsize="x-small", color=colour
            )
    ax.set_ylabel("the effect of this feature is changed …", fontsize="small", color=STYLE.ink)
    ax.set_xlabel("… by the value of", fontsize="small", color=STYLE.ink)
    tidy(ax, grid=None)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    set_title(ax, title, f"{layout.hidden} weaker features not shown" if layout.hidden else "")
    _add_bar(ax.figure, image, ax, layout.label)
    return ax


def _draw_mesh(ax: "Axes", layout: MapLayout) -> Any:
    shown = np.ma.masked_where(~layout.has_data, layout.values)
    mesh = ax.pcolormesh(
        layout.x.edges, layout.y.edges, shown, cmap=colour_map(STYLE.diverging), vmin=-layout.limit, vmax=layout.limit,
        rasterized=True, linewidth=0,
    )  # fmt: skip
    ax.set_facecolor(STYLE.density)  # the colour of places without rows
    is_smooth = layout.x.is_number and layout.y.is_number and min(layout.values.shape) > 12
    if is_smooth:
        levels = np.linspace(-layout.limit, layout.limit, 9)
        styles = ["dashed" if level < 0 else "solid" for level in levels]  # signs survive a grey printer
        ax.contour(
            layout.x.centres, layout.y.centres, shown, levels=levels, colors=STYLE.ink, linewidths=0.45, alpha=0.55,
            linestyles=styles,
        )  # fmt: skip
    elif layout.values.size <= 120:
        decimals = max(decimals_for(2 * layout.limit) - 1, 0)
        for row, column in np.argwhere(layout.has_data):
            value = float(layout.values[row, column])
            colour = STYLE.paper if abs(value) > 0.6 * layout.limit else STYLE.ink
            ax.text(
                layout.x.centres[column], layout.y.centres[row], format_fixed(value, decimals), ha="center",
                va="center", fontsize="x-small", color=colour,
            )  # fmt: skip
    return mesh


def _draw_lines(layout: MapLayout, ax: "Axes | None") -> "Axes":
    ax = new_axes(ax, (6.2, 3.8))
    markers = ("o", "s", "^", "D", "v", "P", "X")
    n_places = len(layout.x.centres)
    marked = None if n_places <= 32 else [n_places - 1] if layout.x.has_gap else []  # a single point makes no line
    for at, text in enumerate(layout.y.ticks):
        number = float(layout.y.centres[at])
        label = format_value(number) if layout.y.is_number else text
        ax.plot(
            layout.x.centres, np.where(layout.has_data[at], layout.values[at], np.nan), color=STYLE.series[at % 7],
            marker=markers[at % 7], markevery=marked, markersize=4, linewidth=1.8, label=shorten(label, 20),
        )  # fmt: skip
    ax.axhline(0, color=STYLE.soft, linewidth=0.7, zorder=0.6)
    _set_axis(ax, layout.x, "x")
    ax.set_ylabel(layout.label, fontsize="small", color=STYLE.ink, parse_math=False)
    tidy(ax)
    legend = ax.legend(
        title=shorten(layout.y.label, 24), frameon=False, fontsize="small", title_fontsize="small", loc="center left",
        bbox_to_anchor=(1.01, 0.5),
    )  # fmt: skip
    for word in (*legend.get_texts(), legend.get_title()):
        word.set_parse_math(False)
    set_title(ax, shorten(layout.title, 52), layout.note)
    return ax


def _set_axis(ax: "Axes", side: MapAxis, which: str) -> None:
    if which == "x":
        ax.set_xlabel(shorten(side.label, 40), fontsize="small", color=STYLE.ink, parse_math=False)
    else:
        ax.set_ylabel(shorten(side.label, 40), fontsize="small", color=STYLE.ink, parse_math=False)
    if side.has_gap:
        places, words = zip(*side.marks, strict=True)
        (ax.set_xticks if which == "x" else ax.set_yticks)(places, words)
        return
    if side.is_number:
        compact_ticks(ax, which)
        return
    labels = shorten_all(side.ticks, 18)
    if which == "x":
        is_long = len(labels) > 8 or max(map(len, labels)) > 8
        style: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
        ax.set_xticks(side.centres, labels, parse_math=False, **style)
    else:
        ax.set_yticks(side.centres, labels, parse_math=False)


def _add_bar(figure: Any, mesh: Any, ax: Any, label: str) -> None:
    bar = figure.colorbar(mesh, ax=ax, shrink=0.85, pad=0.02, aspect=28)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize="x-small", colors=STYLE.soft, labelcolor=STYLE.ink, width=0.6, length=2)
    bar.set_label(label, fontsize="small", color=STYLE.ink, parse_math=False)
