"""``nae quality``: measure a model on rows whose truth is known, for all of them and by group."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.table import Table

from nae._typing import AnyArray, Array
from nae.cli.beside import find_remembered
from nae.cli.columns import align, column_of, find_column
from nae.cli.console import digits, make_table, out
from nae.cli.options import DataFile, Json, ModelFile, OffsetColumns, WeightColumn, load_model
from nae.cli.quality import find_target, quality_table, read_target
from nae.cli.reading import read_file
from nae.cli.splits import find_test_rows
from nae.encoding import read_table
from nae.errors import ConfigError
from nae.quality import Groups, Measure, Quality, Rate, by_group, measure, reliability
from nae.tables import TableModel

__all__ = ["quality"]

_MOST_COLUMNS = 4  # groups beside each other
_MOST_NAMES = 7  # measures and rates of groups below each other


def quality(
    model: ModelFile,
    data: DataFile,
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", help="A column that divides the rows into groups. Repeated, every combination is a group."
        ),
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of a number that divides the rows.")] = 4,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="The target's column. Default: the one that the model remembers."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--class", help="The class whose rates are printed, of a model of two classes.")
    ] = None,
    offset: OffsetColumns = None,
    weight: WeightColumn = None,
    as_json: Json = False,
) -> None:
    """Print how good a model is on rows with a target, compared with a rule that knows only the average.

    With --by, for every group: measures, calibration, who is selected, and where contributions differ. If the table is
    the one the model was fitted to, only its test rows are measured.
    """
    tables = load_model(model)
    if output is not None:
        tables = _speaking_for(tables, output)
    rows = _read(tables, read_file(data), target, offset, weight)
    if not by:
        _print_quality(rows, as_json=as_json)
        return
    names = [find_column(name, rows.table) for name in by]
    groups = by_group(
        tables,
        rows.features,
        rows.target,
        by={name: read_table(rows.table.select([name])).arrays[0] for name in names},
        sample_weight=rows.weight,
        offset=rows.offset,
        n_bins=bins,
    )
    if as_json:
        out().print(groups.to_json(), soft_wrap=True)
        return
    out().print(_groups_table(f"{rows.words}, by {' and '.join(names)}", groups))
    out().print(groups.text, soft_wrap=True)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows that are measured."""

    model: TableModel
    table: pa.Table
    features: pa.Table
    target: AnyArray
    offset: Array | None
    weight: Array | None
    words: str


def _read(
    model: TableModel, table: pa.Table, target: str | None, offset: list[str] | None, weight: str | None
) -> _Rows:
    name = find_target(model, table, target)
    y = read_target(column_of(table, name), name, classes=model.classes or None)
    beside = find_remembered(model, table, offset, weight)
    features = align(table, model.schema)
    found = find_test_rows(model, features, y)
    words = f"On {table.num_rows:,} rows"
    if found is not None:
        table, features, y = table.take(found), features.take(found), y[found]
        words = f"On {len(found):,} rows that the model was not trained on"
    return _Rows(model, table, features, y, beside.offset_of(table), beside.weight_of(table), words)


def _speaking_for(model: TableModel, output: str) -> TableModel:
    if len(model.classes) != 2:
        raise ConfigError("--class chooses one of two classes; this model has none, or more than two.")
    return model.for_class(output)


def _print_quality(rows: _Rows, *, as_json: bool) -> None:
    given: dict[str, Any] = {"sample_weight": rows.weight, "offset": rows.offset}
    found = measure(rows.model, rows.features, rows.target, **given)
    curve = reliability(rows.model, rows.features, rows.target, **given) if rows.model.classes else None
    if as_json:
        content = {"rows": found.n_rows, "baseline": found.baseline, "measures": _as_json(found)}
        out().print_json(data=content | ({} if curve is None else {"reliability": curve.to_dict()}))
        return
    out().print(quality_table(rows.words, found))
    if curve is not None:
        out().print(curve.sentence, soft_wrap=True)


def _as_json(found: Quality) -> list[dict[str, object]]:
    return [{"name": one.name, "value": one.value, "baseline": one.baseline, "interval": one.interval} for one in found]


def _groups_table(title: str, groups: Groups) -> Table:
    """Return few groups beside each other, with intervals; many below each other, without."""
    if len(groups) > _MOST_COLUMNS:
        return _long_table(title, groups)
    table = make_table(title, "", *(one.name + (" (small)" if one.is_small else "") for one in groups))
    table.add_row("rows", *(f"{one.n_rows:,}" for one in groups))
    for name in groups.names:
        each = [one.found.get(name) for one in groups]
        table.add_row(name, *(_shown(one, with_range=True) for one in each))
    return table


def _long_table(title: str, groups: Groups) -> Table:
    names = groups.names[:_MOST_NAMES]
    table = make_table(title, "", "rows", *names)
    for one in groups:
        shown = [_shown(one.found.get(name)) for name in names]
        table.add_row(one.name + (" (small)" if one.is_small else ""), f"{one.n_rows:,}", *shown)
    return table


def _shown(one: Measure | Rate | None, *, with_range: bool = False) -> str:
    if one is None or math.isnan(one.value):
        return "–"
    shown = digits(one.value, 3)
    if not with_range or one.interval is None:
        return shown
    return f"{shown} ({digits(one.interval[0], 2)} to {digits(one.interval[1], 2)})"
