"""The rows a model is measured on: those of positive weight whose truth is known."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding.beside import read_offset, read_weight
from nae.encoding.cells import Cells
from nae.encoding.columns import category_keys
from nae.encoding.target import floats, to_array
from nae.errors import DataError, UserError, did_you_mean
from nae.quality.baseline import Baseline, Criterion
from nae.tables.model import TableModel

__all__ = ["MeasuredRows", "check_offset", "class_positions", "read_rows", "table_of"]


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Rows with their truth and everything that the model needs to predict them."""

    model: TableModel
    cells: Cells
    truth: Array
    """Numbers, (row, output), where several quantiles have the same one; or positions among the classes, (row, 1)."""
    weight: Array
    offset: Array | None  # (row, output)
    positions: IntArray  # of these rows in the table
    n_given: int  # rows of the table, those without a truth included

    @staticmethod
    def known(model: TableModel, cells: Cells, truth: Array, *, weight: Array, offset: Array | None) -> "MeasuredRows":
        """Return the rows with a positive weight and a known truth; NaN means that the truth is unknown."""
        kept = np.flatnonzero((weight > 0) & ~np.isnan(truth).any(axis=1))
        if len(kept) == 0:
            raise DataError("Some row must have a target; none has.")
        base = None if offset is None else offset[kept]
        return MeasuredRows(model, cells.take(kept), truth[kept], weight[kept], base, kept, len(weight))

    def take(self, rows: IntArray) -> "MeasuredRows":
        """Return some of the rows."""
        base = None if self.offset is None else self.offset[rows]
        return replace(
            self,
            cells=self.cells.take(rows),
            truth=self.truth[rows],
            weight=self.weight[rows],
            offset=base,
            positions=self.positions[rows],
        )

    @property
    def codes(self) -> IntArray:
        """The classes by position, (row,)."""
        return self.truth[:, 0].astype(np.int64)

    def predict(self) -> Array:
        """Return predicted numbers, (row, output), or probabilities, (row, class)."""
        if self.model.classes:
            return self.model.predict_proba(self.cells, offset=self.offset)
        return np.asarray(self.model.predict(self.cells, offset=self.offset)).reshape(self.truth.shape)

    def baseline(self) -> Baseline:
        """Return the baseline stored in the model, or else that of these rows."""
        model = self.model
        remembered = Baseline.of(model.training, is_classes=bool(model.classes), link=model.link)
        if remembered is not None:
            return remembered
        if model.classes:
            return Baseline.of_classes(self.codes, self.weight, len(model.classes))
        criterion = Criterion.of(model.training)
        return Baseline.of_numbers(self.truth, self.weight, self.offset, criterion=criterion, link=model.link)


def table_of(model: Any) -> TableModel:
    """Return the tables of a fitted estimator or of a loaded model."""
    table = getattr(model, "model_", model)
    if not isinstance(table, TableModel):
        raise UserError(f"Only a fitted model can be measured; got {type(model).__name__}.")
    return table


def read_rows(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> MeasuredRows:
    """Return the rows of a table with their truth, weights and offsets, checked."""
    table = table_of(model)
    cells = table.cells(X)
    truth = _read_truth(y, table)
    if len(truth) != len(cells):
        raise DataError(f"y must have one value per row ({len(cells)}); got {len(truth)}.")
    check_offset(table, offset)
    base = read_offset(offset, len(cells), table.n_outputs, is_per_class=table.n_outputs > 1 and bool(table.classes))
    return MeasuredRows.known(table, cells, truth, weight=read_weight(sample_weight, len(cells)), offset=base)


def check_offset(model: TableModel, offset: Any, *, hint: str = "Pass offset=…, one number per row.") -> None:
    """Raise an error if a model that was fitted with an offset is to be measured without one."""
    if model.offset_names is None or offset is not None:
        return
    names = " and ".join(map(repr, model.offset_names))
    raise DataError(
        "A model that was fitted with an offset must be measured with one; "
        f"{f'its offset was {names}, and none' if names else 'none'} was given. {hint}"
    )


def class_positions(labels: AnyArray, classes: tuple[str, ...], *, what: str = "y", first_row: int = 0) -> Array:
    """Return the position of every label among the classes, NaN for missing labels; 1, 1.0 and '1' are one label.

    ``first_row`` is the number of the first row in error messages.
    """
    known = {_plain(label): float(i) for i, label in enumerate(classes)}
    column = labels.astype(object) if labels.dtype.kind not in "biuf" else labels
    keys = [None if key is None else _plain(key) for key in category_keys(column)]
    for row, key in enumerate(keys, start=first_row):
        if key is not None and key not in known:
            raise DataError(
                f"{what} must hold the model's classes {list(classes)}; row {row} holds {key!r}."
                f"{did_you_mean(key, classes, is_listed=True)}"
            )
    return np.array([np.nan if key is None else known[key] for key in keys])


def _read_truth(y: Any, model: TableModel) -> Array:
    given = to_array(y)
    if model.classes:
        return class_positions(given.ravel(), model.classes)[:, None]
    values = floats(given)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] != model.n_targets:
        rule = f"one column per output ({model.n_outputs})" if model.n_targets > 1 else "one column"
        raise DataError(f"y must have {rule}; got shape {given.shape}.")
    known = np.where(np.isfinite(values), values, np.nan)
    return np.broadcast_to(known, (len(known), model.n_outputs))


def _plain(label: str) -> str:
    try:
        number = float(label)
    except ValueError:
        return label
    return str(int(number)) if number.is_integer() else repr(number)
