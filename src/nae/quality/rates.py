"""Rates of a group of rows: what was predicted and what happened, and which rows a classifier selects."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, BoolArray
from nae.quality.baseline import Criterion
from nae.quality.rows import MeasuredRows

__all__ = ["ERROR", "FALSE_POSITIVE", "RATIO", "SELECTED", "TRUE_POSITIVE", "Ratio", "rates_of"]

SELECTED, TRUE_POSITIVE, FALSE_POSITIVE = "selection rate", "true positive rate", "false positive rate"
ERROR, RATIO = "predicted minus actual", "predicted over actual"


@dataclass(frozen=True, eq=False)
class Ratio:
    """The weighted sum of one number per row, over that of another."""

    part: Array
    whole: Array

    def __call__(self, weight: Array) -> float:
        """Return the ratio; NaN if its denominator is zero."""
        total = float(weight @ self.whole)
        return float(weight @ self.part) / total if total else np.nan

    @property
    def n_rows(self) -> int:
        """The number of rows that the ratio is about."""
        return int(np.count_nonzero(self.whole))


def rates_of(rows: MeasuredRows, predicted: Array) -> dict[str, Ratio]:
    """Return the rates as functions of the rows' weights.

    Predicted are numbers, (row, output), or probabilities, (row, class).
    """
    if len(rows.model.classes) == 2:
        return _of_class(rows.codes == 1, predicted[:, 1], rows.model.choose(predicted) == 1, "")
    if rows.model.classes:
        chosen = rows.model.choose(predicted)
        found: dict[str, Ratio] = {}
        for at, name in enumerate(rows.model.classes):
            found |= _of_class(rows.codes == at, predicted[:, at], chosen == at, f", {name}")
        return found
    return _of_numbers(rows, predicted)


def _mean(values: Array) -> Ratio:
    return Ratio(values, np.ones(len(values)))


def _of_class(is_class: BoolArray, chance: Array, is_chosen: BoolArray, end: str) -> dict[str, Ratio]:
    """Return the rates of one class: of its rows and of all others, how many are predicted as it."""
    actual, chosen = is_class.astype(np.float64), is_chosen.astype(np.float64)
    return {
        f"actual{end}": _mean(actual),
        f"predicted{end}": _mean(chance),
        f"{ERROR}{end}": _mean(chance - actual),
        f"{SELECTED}{end}": _mean(chosen),
        f"{TRUE_POSITIVE}{end}": Ratio(chosen * actual, actual),
        f"{FALSE_POSITIVE}{end}": Ratio(chosen * (1 - actual), 1 - actual),
        f"precision{end}": Ratio(chosen * actual, chosen),
    }


def _of_numbers(rows: MeasuredRows, predicted: Array) -> dict[str, Ratio]:
    """Return means of the actual and of the predicted numbers; for a quantile, the share of rows at or below it."""
    criterion = Criterion.of(rows.model.training)
    found: dict[str, Ratio] = {}
    for at, name in enumerate(rows.model.outputs):
        end = f", {name}" if rows.model.n_outputs > 1 else ""
        actual, value = rows.truth[:, at], predicted[:, at]
        level = criterion.level_of(at)
        if criterion.loss == "quantile" and level is not None:
            below = (actual <= value).astype(np.float64)
            found |= {f"at or below{end}": _mean(below), f"at or below minus the level{end}": _mean(below - level)}
            continue
        found |= {
            f"actual{end}": _mean(actual),
            f"predicted{end}": _mean(value),
            f"{ERROR}{end}": _mean(value - actual),
        }
        if rows.model.link.name == "log":
            found[f"{RATIO}{end}"] = Ratio(value, actual)
    return found
