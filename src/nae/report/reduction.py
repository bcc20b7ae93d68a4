"""Fitting a large model into a page: fewer bits per number, then fewer members, and what that changes, measured."""

from dataclasses import dataclass, replace

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.explanation.reference import require_statistics
from nae.report.packing import Packed, pack, pack_small
from nae.tables.gates import GateTables
from nae.tables.model import TableModel

__all__ = ["PAGE_LIMIT", "FittedModel", "Reduction", "fit_into_page"]

PAGE_LIMIT = 20_000_000  # bytes of base64 that the tables may take
_TABLES = ("experts", "terms", "mix")  # what is large
_MOST_ROWS = 4096  # rows that measure the difference


@dataclass(frozen=True)
class Reduction:
    """What was left out, and the largest difference that made."""

    members: int
    of_members: int
    is_quantised: bool
    largest_difference: float  # of a score
    largest_prediction_difference: float
    n_rows: int


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The model as the page has it."""

    model: TableModel
    arrays: dict[str, Packed]
    reduction: Reduction | None


def fit_into_page(model: TableModel, cells: Cells, *, limit: int = PAGE_LIMIT) -> FittedModel:
    """Return the model as it is if its tables take at most ``limit`` bytes, otherwise as much of it as fits."""
    if _size(model, model.n_members, bytes_each=model.experts.dtype.itemsize) <= limit:
        return FittedModel(model, _pack(model, is_quantised=False), None)
    n_members = model.n_members
    while n_members > 1 and _size(model, n_members, bytes_each=2) > limit:
        n_members -= 1
    few = cells.take(np.unique(np.linspace(0, len(cells) - 1, min(len(cells), _MOST_ROWS)).round().astype(np.int64)))
    smaller = _with_members(model, n_members, few) if n_members < model.n_members else model
    arrays = _pack(smaller, is_quantised=True)
    smaller = _unpacked(smaller, arrays)
    before, after = model.decision_function(few), smaller.decision_function(few)
    difference = np.abs(model.link.inverse(before) - model.link.inverse(after))
    reduction = Reduction(
        members=n_members,
        of_members=model.n_members,
        is_quantised=True,
        largest_difference=float(np.abs(before - after).max()),
        largest_prediction_difference=float(difference.max()),
        n_rows=len(few),
    )
    return FittedModel(smaller, arrays, reduction)


def _size(model: TableModel, n_members: int, *, bytes_each: int) -> int:
    """Return the base64 characters of the large tables."""
    mix = 0 if model.gate.mix is None else model.gate.mix.size
    numbers = (model.experts.size + model.gate.terms.size + mix) // model.n_members * n_members
    return numbers * bytes_each * 4 // 3


def _with_members(model: TableModel, n_members: int, cells: Cells) -> TableModel:
    """Return the model of the first members, every feature's contribution kept at the same mean over the rows."""
    kept = slice(0, n_members)
    gate = model.gate
    smaller = replace(
        model,
        experts=np.ascontiguousarray(model.experts[..., kept]),
        gate=GateTables(
            gate.kind,
            np.ascontiguousarray(gate.terms[..., kept]),
            gate.bias[..., kept],
            None if gate.mix is None else gate.mix[kept],
            None if gate.mix_bias is None else gate.mix_bias[..., kept],
        ),
        statistics=replace(require_statistics(model), gate_mean=require_statistics(model).gate_mean[..., kept]),
    )
    shape = (len(cells), model.n_features, model.n_outputs)
    gap = smaller.contributions(cells).values.reshape(shape).mean(axis=0)
    gap -= model.contributions(cells).values.reshape(shape).mean(axis=0)  # (F, O)
    per_slot = np.repeat(gap, np.diff(model.schema.offsets), axis=0)[:, None, :, None]
    return replace(smaller, experts=(smaller.experts - per_slot).astype(model.experts.dtype))


def _pack(model: TableModel, *, is_quantised: bool) -> dict[str, Packed]:
    statistics, gate = require_statistics(model), model.gate
    tables: dict[str, Array] = {"experts": model.experts, "terms": gate.terms, "bias": gate.bias}
    if gate.mix is not None and gate.mix_bias is not None:
        tables |= {"mix": gate.mix, "mixBias": gate.mix_bias}
    arrays = {name: pack_small(a) if is_quantised and name in _TABLES else pack(a) for name, a in tables.items()}
    exact = {
        "knots": model.schema.knots,
        "intercept": model.intercept,
        "mean": statistics.mean,
        "gateMean": statistics.gate_mean,
        "typical": statistics.typical,
        "weight": statistics.weight,
        "variance": statistics.variance,
        "residual": statistics.residual,
        "scoreVariance": statistics.score_variance,
        "additiveVariance": statistics.additive_variance,
    }
    shown = {
        "quantiles": statistics.quantiles,
        "influence": statistics.influence,
        "agreement": statistics.agreement,
    }
    arrays |= {name: pack(array.astype(np.float64)) for name, array in exact.items()}
    return arrays | {name: pack(array.astype(np.float32)) for name, array in shown.items()}


def _unpacked(model: TableModel, arrays: dict[str, Packed]) -> TableModel:
    """Return the model with the numbers that the page will read."""
    gate = model.gate
    return replace(
        model,
        experts=arrays["experts"].numbers().reshape(model.experts.shape),
        gate=replace(
            gate,
            terms=arrays["terms"].numbers().reshape(gate.terms.shape),
            mix=None if gate.mix is None else arrays["mix"].numbers().reshape(gate.mix.shape),
        ),
    )
