"""The rows of a report: features in the model's order, and the truth where it is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array
from nae.encoding.columns import Columns, category_keys, numbers
from nae.encoding.frames import read_table
from nae.errors import DataError, did_you_mean
from nae.tables.model import TableModel

__all__ = ["ReportRows", "read_rows"]


@dataclass(frozen=True, eq=False)
class ReportRows:
    """Rows to measure the model on and to show."""

    columns: Columns
    target: Array | None  # (row, output) numbers, or (row, 1) positions among the classes; NaN where unknown
    target_name: str

    def __len__(self) -> int:
        return self.columns.n_rows


def read_rows(model: TableModel, data: Any, target: str | None) -> ReportRows:
    """Split a table into the model's features and the truth; without ``target``, columns named as the outputs count."""
    wanted = {*model.feature_names, *model.outputs, *((target,) if target else ())}
    table = read_table(data, only=wanted if model.schema.has_names else None)
    if table.n_rows == 0:
        raise DataError("A report needs at least one row; the table has none.")
    names = table.names or ()
    found = _target_columns(model, names, target)
    truth = None
    if found:
        columns = [table.arrays[names.index(name)] for name in found]
        truth = _class_positions(model, columns[0], found[0]) if model.classes else _numbers(columns, found)
    return ReportRows(_features(model, table, found), truth, target or _name_of(model, found))


def _target_columns(model: TableModel, names: tuple[str, ...], target: str | None) -> tuple[str, ...]:
    if target is None:
        is_named = not model.classes and set(model.outputs) <= set(names) - set(model.feature_names)
        return model.outputs if is_named else ()
    if target not in names:
        hint = did_you_mean(target, names) if names else " The table has no column names."
        raise DataError(f"The target must be a column of the table; {target!r} is none.{hint}")
    if model.n_outputs > 1 and not model.classes:
        raise DataError(f"This model has {model.n_outputs} outputs; leave out target and name columns {model.outputs}.")
    return (target,)


def _name_of(model: TableModel, found: tuple[str, ...]) -> str:
    if found:
        return ", ".join(found)
    if "target" in model.training:
        return str(model.training["target"])
    if model.classes:
        return "the class"
    return "the target" if model.outputs == ("score",) else ", ".join(model.outputs)


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


def _class_positions(model: TableModel, column: AnyArray, name: str) -> Array:
    """Return where every label stands among the classes; 1, 1.0 and '1' are one label."""
    labels = np.array(model.classes, dtype=object)
    known = {_plain(label): float(i) for i, label in enumerate(labels)}
    keys = [None if key is None else _plain(key) for key in category_keys(column)]
    for row, key in enumerate(keys):
        if key is not None and key not in known:
            raise DataError(
                f"Column {name!r} must hold the model's classes {list(model.classes)}; row {row} holds {key!r}."
            )
    return np.array([[np.nan if key is None else known[key]] for key in keys])


def _plain(label: str) -> str:
    try:
        number = float(label)
    except ValueError:
        return label
    return str(int(number)) if number.is_integer() else repr(number)
