"""The page and the picture of the cost of a fit."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cost import AXES, Measured, Point
from benchmarks.tables import markdown_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "read_measurements", "render_cost", "write_page"]

_EMPTY = "–"


def write_page(path: Path) -> None:
    """Write the page and the picture beside the measurements in ``path``."""
    machine, found = read_measurements(path.read_text())
    picture = path.with_suffix(".png")
    draw(found, picture)
    path.with_suffix(".md").write_text(render_cost(machine, found, picture=picture.name))


def read_measurements(text: str) -> tuple[str, list[Measured]]:
    """Return the machine and the points in a JSON text."""
    content = json.loads(text)
    found = [Measured(**(each | {"point": Point(**each["point"])})) for each in content["points"]]
    return content["machine"], found


def render_cost(machine: str, found: list[Measured], *, picture: str) -> str:
    """Return the page: one table per axis."""
    devices = sorted({each.device for each in found if each.device})
    busy = [each.foreign_load or 0.0 for each in found if (each.foreign_load or 0.0) > 0.1]
    lines = [
        "# Cost of a fit\n",
        f"Made by `python -m benchmarks cost` on {machine}; trained on {' / '.join(devices)}.",
        "Along rows, default settings but for the experts; along the other axes, 128 knots and a width of 32,",
        "where the defaults vary both with the size of the table. The rows are random numbers.",
        "*Computed* columns are the measured step times the steps of an epoch, or of the longest fit there can be;",
        "most fits stop earlier, when validation no longer improves.",
    ]
    if busy:
        lines.append(
            f"**Others used up to {max(busy):.0%} of the processors during {len(busy)} of {len(found)} measurements: "
            "these are too slow.**"
        )
    lines += ["", f"![Cost against rows, features, experts and members]({picture})"]
    for axis in AXES:
        chosen = [each for each in found if each.point.axis == axis]
        table = _rows_table(chosen) if axis == "rows" else _steps_table(axis, chosen)
        lines += ["", f"## {axis.capitalize()}", "", _constants(axis, chosen), "", table]
    return "\n".join(lines) + "\n"


def _constants(axis: str, found: list[Measured]) -> str:
    if not found:
        return ""
    point = found[0].point
    fixed = [f"{getattr(point, f'n_{other}'):,} {other}" for other in AXES if other != axis]
    return ", ".join(fixed) + "."


def _rows_table(found: list[Measured]) -> str:
    header = [
        "rows", "batch", "one epoch, s", "step, ms", "encoding and tables, s", "predict, µs per row", "memory, MB",
        "longest fit, s (computed)",
    ]  # fmt: skip
    rows = []
    for each in found:
        predict = None if each.predict_seconds is None else 1e6 * each.predict_seconds / each.point.n_rows
        step = None if each.step_seconds is None else 1e3 * each.step_seconds
        values = (each.epoch_seconds, step, each.encode_seconds, predict, each.memory_mb, each.most_fit_seconds)
        rows.append([f"{each.point.size:,}", str(each.batch_size or _EMPTY), *map(_number, values)])
    return markdown_table(header, rows)


def _steps_table(axis: str, found: list[Measured]) -> str:
    header = [axis, "gate", "batch", "step, ms", "memory, MB", "one epoch, s (computed)", "longest fit, s (computed)"]
    rows = []
    for each in found:
        step = None if each.step_seconds is None else 1e3 * each.step_seconds
        values = (step, each.memory_mb, each.epoch_seconds, each.most_fit_seconds)
        name = f"{each.point.size:,}" + (f" ({each.reason})" if each.reason else "")
        rows.append([name, each.gate or _EMPTY, str(each.batch_size or _EMPTY), *map(_number, values)])
    return markdown_table(header, rows)


def _number(value: float | None) -> str:
    return _EMPTY if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw(found: list[Measured], path: Path) -> None:
    """Draw one panel per axis: seconds along rows, milliseconds of a step along the others."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.6), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(AXES), gridspec_kw={"width_ratios": (1.35, 1, 1, 1)})
    for axis, panel in zip(AXES, panels, strict=True):
        chosen = [each for each in found if each.point.axis == axis and each.step_seconds is not None]
        if axis == "rows":
            _draw_rows(panel, chosen)
        else:
            _draw_steps(panel, chosen)
        _dress(panel, axis, chosen)
    steps = [1e3 * each.step_seconds for each in found if each.point.axis != "rows" and each.step_seconds]
    for panel in panels[1:] if steps else ():
        panel.set_ylim(min(steps) / 1.5, max(steps) * 2)  # the same scale, so that panels can be compared
    figure.savefig(path)


def _draw_rows(panel: "Axes", found: list[Measured]) -> None:
    sizes = [each.point.size for each in found]
    lines: list[tuple[str, list[float | None], dict[str, Any]]] = [
        ("longest fit (computed)", [each.most_fit_seconds for each in found], {"ls": "--", "mfc": "white", "c": "0.5"}),
        ("one epoch", [each.epoch_seconds for each in found], {"c": "C0"}),
        ("encoding and tables", [each.encode_seconds for each in found], {"c": "C1"}),
        ("predicting all rows", [each.predict_seconds for each in found], {"c": "C2"}),
    ]
    for label, values, style in lines:
        panel.plot(
            sizes, [float("nan") if value is None else value for value in values], marker="o", label=label, **style
        )
    panel.set_ylabel("seconds")
    panel.legend(frameon=False, fontsize=8)


def _draw_steps(panel: "Axes", found: list[Measured]) -> None:
    sizes, steps = [each.point.size for each in found], [1e3 * (each.step_seconds or 0) for each in found]
    panel.plot(sizes, steps, "o-", c="C0")
    for place in zip(sizes, steps, strict=True):
        note = _number(place[1])
        panel.annotate(note, place, (0, 7), textcoords="offset points", ha="center", fontsize=8)
    panel.set_ylabel("one training step, ms")


def _dress(panel: "Axes", axis: str, found: list[Measured]) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    panel.set_xlabel(axis)
    if not found:
        return
    panel.set_xscale("log", base=10 if axis == "rows" else 2)
    panel.set_yscale("log")
    panel.set_title(_constants(axis, found).rstrip("."), fontsize=8)
    panel.set_xticks([each.point.size for each in found])
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    panel.grid(visible=True, which="major", alpha=0.25)
    panel.margins(x=0.12, y=0.15)
    panel.spines[["top", "right"]].set_visible(False)
