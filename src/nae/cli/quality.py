"""How good predictions are, beside those of somebody who knows nothing but the target's average."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich.table import Table

from nae._typing import AnyArray, Array
from nae.cli.console import digits, make_table
from nae.encoding import read_table
from nae.encoding.columns import category_keys, is_missing, numbers
from nae.errors import DataError, did_you_mean
from nae.tables import TableModel

__all__ = ["Baseline", "Measure", "measure", "quality_table", "read_target"]


@dataclass(frozen=True)
class Baseline:
    """The dumb rule: always the mean, or always the frequencies of the classes."""

    mean: float = 0.0
    shares: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        return "always the same shares" if self.shares else "always the mean"

    @staticmethod
    def of(target: AnyArray, classes: tuple[str, ...]) -> "Baseline":
        """Return the rule learned from some rows."""
        if not classes:
            return Baseline(mean=float(np.mean(target)))
        return Baseline(shares=tuple(float(np.mean(target == name)) for name in classes))

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as JSON values."""
        return {"shares": list(self.shares)} if self.shares else {"mean": self.mean}

    @staticmethod
    def from_training(model: TableModel) -> "Baseline | None":
        """Return the rule a model file remembers."""
        found = model.training.get("baseline")
        if not isinstance(found, dict):
            return None
        return Baseline(mean=float(found.get("mean", 0.0)), shares=tuple(found.get("shares", ())))


@dataclass(frozen=True)
class Measure:
    """One number about predictions, of a model and of the baseline."""

    name: str
    value: float
    baseline: float
    is_better_low: bool = True


def read_target(column: pa.ChunkedArray, name: str, *, classes: tuple[str, ...] | None) -> AnyArray:
    """Return the target as numbers, or as class names where ``classes`` is not None; missing is NaN or None."""
    array = read_table(pa.table([column], names=[name])).arrays[0]
    if classes is None:
        return numbers(array, name)
    keys = category_keys(array)
    if classes:
        for row, key in enumerate(keys, start=1):
            if key is not None and key not in classes:
                raise DataError(
                    f"Column {name!r} must hold the model's classes; row {row} holds {key!r}."
                    + (did_you_mean(key, classes))
                )
    return keys


def measure(model: TableModel, X: pa.Table, target: AnyArray, *, baseline: Baseline | None = None) -> list[Measure]:
    """Return the measures of a model on rows whose target is known; other rows are left out."""
    known = np.flatnonzero(~is_missing(target))
    if len(known) == 0:
        raise DataError("Some row must have a target; none has.")
    X, target = X.take(known), target[known]
    rule = baseline or Baseline.of(target, model.classes)
    if model.classes:
        codes = np.array([model.classes.index(label) for label in target])
        shares = np.broadcast_to(np.array(rule.shares), (len(codes), len(model.classes)))
        return _measure_classes(codes, model.predict_proba(X), shares)
    if model.n_outputs > 1:
        raise DataError(f"Measures are for one target; this model predicts {model.n_outputs}.")
    values = target.astype(np.float64)
    return _measure_numbers(values, model.predict(X), np.full(len(values), rule.mean))


def quality_table(title: str, measures: list[Measure], rule: str) -> Table:
    """Return measures as a table to print."""
    table = make_table(title, "", "model", rule, "better by")
    for one in measures:
        gain = one.baseline - one.value if one.is_better_low else one.value - one.baseline
        is_share = one.is_better_low and one.baseline > 0  # a share of an R² near 0 says nothing
        share = f"{100 * gain / one.baseline:+.0f} %" if is_share else digits(gain, 3, signed=True)
        table.add_row(one.name, digits(one.value), digits(one.baseline), share)
    return table


def _measure_numbers(truth: Array, found: Array, rule: Array) -> list[Measure]:
    error, dumb = found - truth, rule - truth
    spread = float(np.mean((truth - truth.mean()) ** 2)) or 1.0

    def r2(difference: Array) -> float:
        return 1 - float(np.mean(difference**2)) / spread

    return [
        Measure("RMSE", float(np.sqrt(np.mean(error**2))), float(np.sqrt(np.mean(dumb**2)))),
        Measure("mean absolute error", float(np.mean(np.abs(error))), float(np.mean(np.abs(dumb)))),
        Measure("R²", r2(error), r2(dumb), is_better_low=False),
    ]


def _measure_classes(codes: AnyArray, found: Array, rule: Array) -> list[Measure]:
    rows = np.arange(len(codes))

    def log_loss(probability: Array) -> float:
        return float(-np.mean(np.log(np.clip(probability[rows, codes], 1e-15, 1.0))))

    def accuracy(probability: Array) -> float:
        return float(np.mean(probability.argmax(axis=1) == codes))

    measures = [
        Measure("log loss", log_loss(found), log_loss(rule)),
        Measure("accuracy", accuracy(found), accuracy(rule), is_better_low=False),
    ]
    if found.shape[1] == 2 and 0 < codes.sum() < len(codes):
        measures.append(Measure("AUC", _auc(codes == 1, found[:, 1]), 0.5, is_better_low=False))
    return measures


def _auc(is_positive: AnyArray, score: Array) -> float:
    """Return how often a positive row scores above a negative one, ties counted half."""
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n_positive = int(is_positive.sum())
    above = rank[is_positive].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * (len(score) - n_positive)))
