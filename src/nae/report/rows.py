"""The rows of a report: features in the model's order, and the truth where it is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding.beside import read_offset, read_weight
from nae.encoding.columns import Columns, numbers
from nae.encoding.frames import read_table
from nae.errors import DataError, did_you_mean
from nae.quality import check_offset, class_positions
from nae.tables.model import TableModel

__all__ = ["ReportRows", "read_rows"]


@dataclass(frozen=True, eq=False)
class ReportRows:
    """The rows that a report measures the model on and shows."""

    columns: Columns
    target: Array | None
    """Numbers, (row, output), where several quantiles have the same one; or positions among the classes, (row, 1). NaN
    if unknown."""
    target_name: str
    row_numbers: IntArray  # the number that is shown for each row
    weight: Array | None = None  # the weight of each row when the model is measured
    offset: Array | None = None  # (row, output), added to every score

    def __len__(self) -> int:
        return self.columns.n_rows


def read_rows(
    model: TableModel,
    data: Any,
    target: str | None,
    *,
    offset: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    row_numbers: Sequence[int] | IntArray | None = None,
) -> ReportRows:
    """Divide a table into the model's features, the truth, offsets and weights.

    If ``target`` is None, columns with the names of the outputs are the truth. If ``offset`` is None, the columns that
    the model remembers are the offsets.
    """
    given = (offset,) if isinstance(offset, str) else tuple(offset or ())
    base = given or model.offset_names or ()
    beside = {*base, *((sample_weight,) if sample_weight else ())}
    wanted = {*model.feature_names, *_targets_of(model), *((target,) if target else ()), *beside}
    table = read_table(data, only=wanted if model.schema.has_names else None)
    if table.n_rows == 0:
        raise DataError("A report needs at least one row; the table has none.")
    names = table.names or ()
    found = _target_columns(model, names, target)
    truth = None
    if found:
        columns = [table.arrays[names.index(name)] for name in found]
        truth = _positions(model, columns[0], found[0]) if model.classes else _numbers(columns, found)
        truth = np.broadcast_to(truth, (table.n_rows, model.n_outputs)) if model.training.levels else truth
    shift: Array | None = None
    if base and (given or set(base) <= set(names)):
        shift = np.stack([_beside(table, name, "offset") for name in base], axis=1)
        shift = read_offset(shift, table.n_rows, model.n_outputs, is_per_class=len(model.classes) > 2)
    if truth is not None:
        check_offset(model, shift, hint="Name its column: offset=….")
    weight = read_weight(_beside(table, sample_weight, "weight"), table.n_rows) if sample_weight else None
    rows = _features(model, table, (*found, *beside))
    return ReportRows(rows, truth, target or _name_of(model, found), _numbers_of(rows, row_numbers), weight, shift)


def _numbers_of(rows: Columns, given: Sequence[int] | IntArray | None) -> IntArray:
    """Return the number shown for each row: as given, or counted from 1."""
    if given is None:
        return np.arange(1, rows.n_rows + 1)
    if len(given) != rows.n_rows:
        raise DataError(f"row_numbers must hold one number per row; got {len(given)} for {rows.n_rows} rows.")
    return np.asarray(given, dtype=np.int64)


def _beside(table: Columns, name: str, what: str) -> Array:
    names = table.names or ()
    if name not in names:
        raise DataError(f"The {what} must be a column of the table; {name!r} is not.{did_you_mean(name, names)}")
    return numbers(table.arrays[names.index(name)], name)


def _positions(model: TableModel, column: AnyArray, name: str) -> Array:
    return class_positions(column, model.classes, what=f"Column {name!r}")[:, None]


def _targets_of(model: TableModel) -> tuple[str, ...]:
    """Return what the columns of the truth are called, where outputs are named after them."""
    if model.training.levels:  # one target for all quantiles
        return () if model.training.target is None else (model.training.target,)
    return model.outputs


def _target_columns(model: TableModel, names: tuple[str, ...], target: str | None) -> tuple[str, ...]:
    if target is None:
        own = _targets_of(model)
        is_named = not model.classes and set(own) <= set(names) - set(model.feature_names)
        return own if is_named else ()
    if target not in names:
        hint = did_you_mean(target, names) if names else " The table has no column names."
        raise DataError(f"The target must be a column of the table; {target!r} is not.{hint}")
    if model.n_targets > 1:
        raise DataError(f"This model has {model.n_outputs} outputs; leave out target and name columns {model.outputs}.")
    return (target,)


def _name_of(model: TableModel, found: tuple[str, ...]) -> str:
    if found:
        return ", ".join(found)
    if model.training.target is not None:
        return model.training.target
    if model.classes:
        return "the class"
    return "the target" if model.outputs == ("score",) or model.training.levels else ", ".join(model.outputs)


def _features(model: TableModel, table: Columns, found: tuple[str, ...]) -> Columns:
    if table.names is None:
        return table
    if model.schema.has_names:
        return table.select(model.feature_names)
    kept = [i for i, name in enumerate(table.names) if name not in found]
    return Columns(tuple(table.arrays[i] for i in kept))


def _numbers(columns: list[AnyArray], names: tuple[str, ...]) -> Array:
    truth = np.stack([numbers(column, name) for column, name in zip(columns, names, strict=True)], axis=1)
    return np.where(np.isfinite(truth), truth, np.nan)
