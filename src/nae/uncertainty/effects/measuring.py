"""Measure how sure the effects of a model are, on its training rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.explanation.own import own_effects
from nae.explanation.reference import has_context, require_statistics
from nae.tables.evidence import Evidence
from nae.tables.model import TableModel
from nae.uncertainty.effects.basis import Basis, make_basis
from nae.uncertainty.effects.families import Family, family_of
from nae.uncertainty.effects.smoothing import Fit, fit_additive
from nae.uncertainty.effects.squares import Sample
from nae.uncertainty.effects.testing import chance_of_curves, chance_of_products

__all__ = ["EffectRows", "measure_effects"]

_MOST_ROWS = 50_000
_MOST_NUMBERS = 12_000_000  # in the columns of the rows
_MOST_COLUMNS = 900
_MOST_CLASSES = 12
_LARGEST = 1e300
_ROWS_PER_COLUMN = 1.25  # fewer rows say nothing about so many columns


@dataclass(frozen=True, eq=False)
class EffectRows:
    """Training rows with the truth on the scale of the model."""

    cells: Cells
    truth: Array  # (row, output)
    offset: Array  # (row, output)
    weight: Array  # (row,), 2 is the row twice

    def __len__(self) -> int:
        return len(self.weight)

    @staticmethod
    def joined(parts: "Sequence[EffectRows]") -> "EffectRows":
        """Return the rows of all parts."""
        cells = Cells(*(np.concatenate([getattr(one.cells, name) for one in parts]) for name in ("slot", "fraction")))
        beside = (np.concatenate([getattr(one, name) for one in parts]) for name in ("truth", "offset", "weight"))
        return EffectRows(cells, *beside)

    def take(self, rows: IntArray) -> "EffectRows":
        """Return some of the rows."""
        return EffectRows(self.cells.take(rows), self.truth[rows], self.offset[rows], self.weight[rows])


def measure_effects(model: TableModel, rows: EffectRows) -> TableModel:
    """Return the same model with the evidence for its effects; without it for a loss that has none, or too few rows.

    With more than two classes, each one is told from all others. That has other effects than the score of a class, so
    there are verdicts, and no bands.
    """
    family = family_of(model.training.loss, model.training.tweedie_power)
    has_classes = len(model.classes) > 2
    if family is None or model.statistics is None or len(model.classes) > _MOST_CLASSES or not len(rows):
        return model
    if has_classes and rows.offset.any():
        return model
    basis = make_basis(model.schema, model.statistics.weight.astype(np.float64))
    n_columns = sum(curve.table.shape[1] for curve in basis.curves)
    rows = _thinned(rows, min(_MOST_ROWS, _MOST_NUMBERS // n_columns) // (model.n_outputs if has_classes else 1))
    if n_columns > _MOST_COLUMNS or len(rows) < _ROWS_PER_COLUMN * n_columns:
        return model
    found = _evidence(model, basis, rows, family)
    if has_classes:
        found = replace(found, centre=np.zeros_like(found.centre), error=np.zeros_like(found.error))
    is_known = all(np.isfinite(array).all() and np.abs(array).max() < _LARGEST for array in found.to_arrays().values())
    return replace(model, evidence=found) if is_known else model


def _thinned(rows: EffectRows, most: int) -> EffectRows:
    """Return the rows that count, or evenly spaced ones of them if there are more than ``most``."""
    some = np.flatnonzero(rows.weight > 0)
    return rows.take(some[:: -(-len(some) // max(most, 1)) or 1])


@np.errstate(all="ignore")  # what overflows is left out
def _evidence(model: TableModel, basis: Basis, rows: EffectRows, family: Family) -> Evidence:
    columns, shown = basis.columns(rows.cells), _shown(model, rows.cells, rows.weight)
    found = []
    for o in range(model.n_outputs):
        truth, start = _task(model, rows, o)
        sample = Sample(columns, truth, rows.offset[:, o], rows.weight, shown[..., o])
        found.append(_of_output(model, basis, sample, family, start))
    return Evidence(*(np.stack(parts, axis=1) for parts in zip(*found, strict=True)))


def _task(model: TableModel, rows: EffectRows, output: int) -> tuple[Array, float]:
    """Return the truth of an output, and the intercept where its fit starts."""
    if len(model.classes) <= 2:
        return rows.truth[:, output], float(model.intercept[output])
    truth = (rows.truth[:, 0] == output).astype(np.float64)
    share = float(rows.weight @ truth / rows.weight.sum())
    return truth, float(np.log(share) - np.log1p(-share))


def _shown(model: TableModel, cells: Cells, weight: Array) -> Array:
    """Return the effects that the model shows, (row, feature, output)."""
    values = model.contributions(cells).values.reshape(len(cells), model.n_features, model.n_outputs)
    shown = own_effects(model, cells, values, require_statistics(model).mean)
    return np.asarray(shown - np.tensordot(weight / weight.sum(), shown, axes=1))


def _of_output(
    model: TableModel, basis: Basis, sample: Sample, family: Family, start: float
) -> tuple[Array, Array, Array]:
    """Return centre and error at every slot, and the chance of every feature."""
    try:
        fit = fit_additive(sample, basis, family, start=start)
    except np.linalg.LinAlgError:  # no convergence, as of classes that a line separates
        return (np.full(basis.schema.n_slots, np.nan),) * 2 + (np.full(len(basis.curves), np.nan),)
    chance = chance_of_curves(basis, fit, is_exact=family.has_known_noise)
    if has_context(model):
        chance = np.minimum(1.0, 2 * np.minimum(chance, chance_of_products(sample, basis, fit)))
    parts = [_curve_of(basis, fit, i) for i in range(len(basis.curves))]
    centre, error = (np.concatenate(found) for found in zip(*parts, strict=True))
    return centre, error, chance


def _curve_of(basis: Basis, fit: Fit, i: int) -> tuple[Array, Array]:
    """Return centre and error of one feature at its slots."""
    curve, part = basis.curves[i], basis.parts[i]
    centre = curve.table @ fit.coefficients[part]
    variance = np.einsum("ij,jk,ik->i", curve.table, fit.covariance[part, part], curve.table)
    variance = variance + np.where(curve.is_pooled, fit.prior[i], 0.0)
    return np.where(curve.has_rows, centre, 0.0), np.where(curve.has_rows, np.sqrt(np.maximum(variance, 0.0)), 0.0)
