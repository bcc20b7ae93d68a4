"""Shape plots: one feature, a page of them, and two models side by side."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from nae._optional import require
from nae.plots.layouts.lines import CompareLayout
from nae.plots.layouts.shape import ShapeLayout
from nae.plots.plotly.canvas import LEGEND, graph, new_figure, plain, set_places, translucent
from nae.plots.style import STYLE

__all__ = ["draw_compare", "draw_shape", "draw_shapes"]


def draw_shape(layout: ShapeLayout) -> Any:
    """Draw the effect of one feature."""
    height = 420 if layout.is_number else max(300, 160 + 24 * len(layout.levels))
    figure = new_figure(title=layout.title, note=layout.note, height=height)
    for trace in _traces(layout):
        figure.add_trace(trace)
    _set_axes(figure, layout)
    return figure


def draw_shapes(layouts: tuple[ShapeLayout, ...], *, title: str = "", n_columns: int = 3) -> Any:
    """Draw a page of features."""
    figure = _page([layout.title for layout in layouts], title, n_columns)
    named: set[str] = set()
    for at, layout in enumerate(layouts):
        place = {"row": at // n_columns + 1, "col": at % n_columns + 1}
        for trace in _traces(layout):
            if trace.showlegend is not False:
                trace.showlegend = trace.name not in named
                named.add(trace.name)
            figure.add_trace(trace, **place)
        _set_axes(figure, layout, **place)
    return figure


def draw_compare(layouts: tuple[CompareLayout, ...], *, n_columns: int = 3) -> Any:
    """Draw the effects of two models over each other, feature by feature."""
    figure = _page([layout.first.title for layout in layouts], " and ".join(layouts[0].names), n_columns)
    for at, layout in enumerate(layouts):
        place = {"row": at // n_columns + 1, "col": at % n_columns + 1}
        for which, shape in enumerate((layout.first, layout.second)):
            colour, dash = ((STYLE.main, "solid"), (STYLE.accent, "dash"))[which]
            name = plain(layout.names[which])
            if shape.is_number:
                line = {"color": colour, "dash": dash, "width": 2}
                figure.add_trace(_band(shape.x, shape.lower, shape.upper, translucent(colour, 0.14)), **place)
                figure.add_trace(
                    graph().Scatter(x=shape.x, y=shape.mean, mode="lines", line=line, name=name, showlegend=at == 0),
                    **place,
                )
            else:
                figure.add_trace(
                    graph().Scatter(
                        x=[level.mean for level in shape.levels],
                        y=_places(layout, shape),
                        mode="markers",
                        marker={"color": colour, "size": 8, "symbol": ("circle", "diamond")[which]},
                        error_x=_reach(shape, colour),
                        name=name,
                        showlegend=at == 0,
                    ),
                    **place,
                )
        _set_axes(figure, replace(layout.first, y_range=layout.y_range), **place)
    return figure


def _page(titles: list[str], title: str, n_columns: int) -> Any:
    subplots = require("plotly.subplots", extra="plotly")
    n_columns = max(1, min(n_columns, len(titles)))
    n_rows = math.ceil(len(titles) / n_columns)
    figure = subplots.make_subplots(
        rows=n_rows,
        cols=n_columns,
        subplot_titles=[plain(name, 30) for name in titles],
        horizontal_spacing=0.14 if n_columns > 1 else 0.0,
        vertical_spacing=min(0.12, 0.3 / n_rows),
    )
    base = new_figure(title=title, height=90 + 270 * n_rows).layout
    figure.update_layout(
        title=base.title, height=base.height, template="none", font=base.font, legend=LEGEND, margin=base.margin
    )
    figure.update_xaxes(gridcolor=STYLE.faint, zerolinecolor=STYLE.soft)
    figure.update_yaxes(gridcolor=STYLE.faint, zerolinecolor=STYLE.soft, automargin=True)
    return figure


def _traces(layout: ShapeLayout) -> list[Any]:
    return _number_traces(layout) if layout.is_number else _level_traces(layout)


def _number_traces(layout: ShapeLayout) -> list[Any]:
    go, x = graph(), layout.x
    low, high = layout.y_range
    traces = [
        go.Bar(
            x=[(bar.left + bar.right) / 2 for bar in layout.density],
            y=[0.2 * (high - low) * bar.height for bar in layout.density],
            base=low,
            width=[bar.right - bar.left for bar in layout.density],
            marker={"color": STYLE.density, "line": {"width": 0}},
            name="share of rows",
            hoverinfo="skip",
        ),
        _band(
            x,
            layout.lower,
            layout.upper,
            translucent(STYLE.band, 0.45),
            "guaranteed bounds",
            has_legend=layout.has_bounds,
        ),
    ]
    if len(layout.dots):
        marker = {"color": translucent(STYLE.dot, 0.4), "size": 4}
        traces.append(go.Scatter(x=layout.dots_at, y=layout.dots, mode="markers", marker=marker, name="rows"))
    else:
        inner = translucent(STYLE.inner, 0.5)
        traces.append(_band(x, layout.low, layout.high, inner, "90 % of rows", has_legend=layout.has_spread))
    if layout.sure_label:
        dashed = {"color": STYLE.sure, "width": 1.3, "dash": "dash"}
        for at, end in enumerate(layout.sure):
            traces.append(go.Scatter(x=x, y=end, mode="lines", line=dashed, name=layout.sure_label, showlegend=at == 0))
    line = {"color": STYLE.main, "width": 2.5}
    mode = "lines+markers" if layout.is_few else "lines"
    traces.append(go.Scatter(x=x, y=layout.mean, mode=mode, line=line, name="mean effect"))
    return [*traces, *_beside(layout)]


def _beside(layout: ShapeLayout) -> list[Any]:
    """Return the values that are not numbers, to the right of the numbers: *missing*, and *unseen* if it is shown."""
    span = layout.x_range[1] - layout.x_range[0]
    return [
        graph().Scatter(
            x=[layout.x_range[1] + (0.06 + 0.09 * at) * span],
            y=[level.mean],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [level.upper - level.mean],
                "arrayminus": [level.mean - level.lower],
                "color": STYLE.inner,
                "thickness": 6,
                "width": 0,
            },
            mode="markers+text",
            text=[level.label],
            textposition="top center",
            marker={"color": STYLE.main, "symbol": "line-ew-open", "size": 16},
            name=level.label,
            showlegend=False,
        )
        for at, level in enumerate(layout.levels)
    ]


def _level_traces(layout: ShapeLayout) -> list[Any]:
    go = graph()
    y = np.arange(len(layout.levels))
    names = [plain(level.label) for level in layout.levels]
    lower = np.array([level.lower for level in layout.levels])
    upper = np.array([level.upper for level in layout.levels])
    low = np.array([level.low for level in layout.levels])
    high = np.array([level.high for level in layout.levels])
    shares = [f"{100 * level.share:.1f} % of rows" for level in layout.levels]

    def bar(start: Any, end: Any, colour: str, width: float, name: str, *, has_legend: bool) -> Any:
        return go.Bar(
            x=end - start, base=start, y=y, hovertext=names, orientation="h", width=width, name=name, customdata=shares,
            marker={"color": colour, "line": {"width": 0}}, showlegend=has_legend,
            hovertemplate="%{hovertext}: %{base:.4g} to %{x:.4g}<br>%{customdata}<extra></extra>",
        )  # fmt: skip

    traces = [bar(lower, upper, translucent(STYLE.band, 0.55), 0.62, "guaranteed bounds", has_legend=layout.has_bounds)]
    if len(layout.dots):
        marker = {"color": translucent(STYLE.dot, 0.4), "size": 4}
        traces.append(go.Scatter(x=layout.dots, y=layout.dots_at, mode="markers", marker=marker, name="rows"))
    else:
        inner = translucent(STYLE.inner, 0.8)
        traces.append(bar(low, high, inner, 0.34, "90 % of rows", has_legend=layout.has_spread))
    if layout.sure_label:
        traces.append(_sure_levels(layout, y))
    traces.append(
        go.Scatter(
            x=[level.mean for level in layout.levels],
            y=y,
            hovertext=names,
            mode="markers",
            marker={"color": STYLE.main, "symbol": "line-ns", "size": 14, "line": {"width": 3, "color": STYLE.main}},
            name="mean effect",
        )
    )
    return traces


def _sure_levels(layout: ShapeLayout, y: Any) -> Any:
    """Return a line per level from one end of its band to the other."""
    ends = [place for level in layout.levels for place in (*level.sure, None)]
    return graph().Scatter(
        x=ends,
        y=[place for at in y for place in (at, at, None)],
        mode="lines+markers",
        line={"color": STYLE.sure, "width": 1.3, "dash": "dash"},
        marker={"color": STYLE.sure, "symbol": "line-ns", "size": 8, "line": {"width": 1.3, "color": STYLE.sure}},
        name=layout.sure_label,
    )


def _band(x: Any, lower: Any, upper: Any, colour: str, name: str = "", *, has_legend: bool = False) -> Any:
    return graph().Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([upper, lower[::-1]]),
        fill="toself",
        fillcolor=colour,
        line={"width": 0, "color": colour},
        mode="lines",
        hoverinfo="skip",
        name=name,
        showlegend=has_legend,
    )


def _places(layout: CompareLayout, shape: ShapeLayout) -> list[float]:
    """Return the positions of either model's levels on the axis of the first model."""
    order = [level.label for level in layout.first.levels]
    return [order.index(level.label) if level.label in order else np.nan for level in shape.levels]


def _reach(shape: ShapeLayout, colour: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [level.upper - level.mean for level in shape.levels],
        "arrayminus": [level.mean - level.lower for level in shape.levels],
        "color": translucent(colour, 0.4),
        "thickness": 3,
        "width": 0,
    }


def _set_axes(figure: Any, layout: ShapeLayout, **place: int) -> None:
    figure.update_layout(barmode="overlay")
    label = {"text": plain(layout.effect_label, 60), "font": {"size": 11 if place else 13}}
    if layout.is_number:
        left, right = layout.x_range
        room = (right - left) * (0.02 + 0.1 * len(layout.levels))
        figure.update_xaxes(range=[left - 0.02 * (right - left), right + room], **place)
        figure.update_yaxes(range=list(layout.y_range), **place)
        if layout.ticks:
            figure.update_xaxes(tickvals=list(layout.ticks), **place)
        if not place or place["col"] == 1:
            figure.update_yaxes(title=label, **place)
    else:
        set_places(figure, "y", [level.label for level in layout.levels], limit=15 if place else 24, **place)
        figure.update_xaxes(range=list(layout.y_range), title=label, **place)
