"""Reduce a large model so that it fits into a page: fewer bits, members or knots, whichever changes scores least."""

from dataclasses import dataclass, replace

import numpy as np

from nae._typing import Array
from nae.encoding.columns import Columns
from nae.encoding.schema import Feature, Number, Schema
from nae.explanation.reference import require_statistics
from nae.report.packing import Packed, pack, pack_small
from nae.tables.gates import MEMBER_AXES, GateTables
from nae.tables.model import TableModel

__all__ = ["PAGE_LIMIT", "PageModel", "Reduction", "fit_into_page"]

PAGE_LIMIT = 20_000_000  # the largest size of all tables in base64, in bytes
_LARGE = ("experts", "gate.terms", "gate.mix")  # the large tables
_STRIDES = (1, 2, 4, 8)  # every knot, every second one, ...
_MOST_ROWS = 1024  # the largest number of rows on which the difference is measured


@dataclass(frozen=True)
class Reduction:
    """What was left out, and the largest difference that this makes."""

    members: int
    of_members: int
    knot_stride: int  # 2 if every second knot was kept
    largest_difference: float  # the largest difference of a score
    largest_prediction_difference: float
    n_rows: int


@dataclass(frozen=True, eq=False)
class PageModel:
    """A model as it is stored in the page."""

    model: TableModel
    arrays: dict[str, Packed]
    reduction: Reduction | None


def fit_into_page(model: TableModel, columns: Columns, *, limit: int = PAGE_LIMIT) -> PageModel:
    """Return the model unchanged if its tables take at most ``limit`` bytes, otherwise a reduced model that fits."""
    if _size(model, model.n_members, bytes_each=model.experts.dtype.itemsize) <= limit:
        return PageModel(model, _pack(model, is_quantised=False), None)
    n_rows = min(columns.n_rows, _MOST_ROWS)
    few = columns.take(np.linspace(0, columns.n_rows - 1, n_rows).round().astype(np.int64))
    before = model.decision_function(few)
    options = [_shrink(model, few, stride, limit) for stride in _STRIDES]
    after = [option.decision_function(few) for option, _, _ in options]
    best = int(np.argmin([np.square(score - before).mean() for score in after]))
    smaller, arrays, stride = options[best]
    reduction = Reduction(
        members=smaller.n_members,
        of_members=model.n_members,
        knot_stride=stride,
        largest_difference=float(np.abs(before - after[best]).max()),
        largest_prediction_difference=float(np.abs(model.link.inverse(before) - model.link.inverse(after[best])).max()),
        n_rows=n_rows,
    )
    return PageModel(smaller, arrays, reduction)


def _shrink(model: TableModel, few: Columns, stride: int, limit: int) -> tuple[TableModel, dict[str, Packed], int]:
    """Return the model with every ``stride``-th knot and as many members as fit, as the page will read it."""
    smaller = _thin(model, stride) if stride > 1 else model
    n_members = model.n_members
    while n_members > 1 and _size(smaller, n_members, bytes_each=2) > limit:
        n_members -= 1
    if n_members < model.n_members:
        smaller = _with_members(smaller, n_members)
    if smaller is not model:
        smaller = _recentred(smaller, model, few)
    arrays = _pack(smaller, is_quantised=True)
    return _unpacked(smaller, arrays), arrays, stride


def _size(model: TableModel, n_members: int, *, bytes_each: int) -> int:
    """Return the base64 characters of the large tables."""
    numbers = sum(table.size for name, table in _tables(model).items() if name in _LARGE) // model.n_members * n_members
    return numbers * bytes_each * 4 // 3


def _tables(model: TableModel) -> dict[str, Array]:
    """Return the tables that the steps of the model read, by their names in a model file."""
    gate = {f"gate.{name}": array for name, array in model.gate.arrays.items()}
    clamps = {} if model.clamps is None else model.clamps.to_arrays()
    return {"experts": model.experts, **gate, **{f"clamps.{name}": array for name, array in clamps.items()}}


def _thin(model: TableModel, stride: int) -> TableModel:
    """Return the model with every ``stride``-th knot of each number, including the last knot."""
    statistics, kept = require_statistics(model), []
    features: list[Feature] = []
    for i, feature in enumerate(model.schema.features):
        slots = np.arange(model.schema.n_slots)[model.schema.slots(i)]
        if isinstance(feature, Number):
            within = np.union1d(np.arange(0, feature.n_values, stride), [feature.n_values - 1])
            features.append(replace(feature, knots=feature.knots[within]))
            slots = np.concatenate([slots[within], slots[-2:]])
        else:
            features.append(feature)
        kept.append(slots)
    chosen = np.concatenate(kept)
    owner = np.searchsorted(chosen, np.arange(model.schema.n_slots), side="right") - 1  # the kept slot at or below
    return replace(
        model,
        schema=Schema(tuple(features), has_names=model.schema.has_names),
        experts=model.experts[chosen],
        gate=replace(model.gate, terms=model.gate.terms[chosen]),
        clamps=None if model.clamps is None else model.clamps.take(chosen),
        residuals=None,
        evidence=None if model.evidence is None else model.evidence.take(chosen),
        statistics=replace(
            statistics,
            weight=np.bincount(owner, statistics.weight, minlength=len(chosen)).astype(np.float64),
            mean=statistics.mean[chosen],
            quantiles=statistics.quantiles[:, chosen],
        ),
    )


def _with_members(model: TableModel, n_members: int) -> TableModel:
    """Return the model of the first members."""
    kept, gate, statistics = np.arange(n_members), model.gate, require_statistics(model)
    return replace(
        model,
        experts=model.experts.take(kept, axis=-1),
        gate=GateTables(
            gate.kind, **{name: array.take(kept, MEMBER_AXES[name]) for name, array in gate.arrays.items()}
        ),
        statistics=replace(statistics, gate_mean=statistics.gate_mean.take(kept, axis=-1)),
    )


def _recentred(smaller: TableModel, model: TableModel, few: Columns) -> TableModel:
    """Return the smaller model, with the contributions of every feature shifted to the mean of the whole model."""
    shape = (few.n_rows, model.n_features, model.n_outputs)
    gap = smaller.contributions(few).values.reshape(shape).mean(axis=0)
    gap -= model.contributions(few).values.reshape(shape).mean(axis=0)  # (F, O)
    per_slot = np.repeat(gap, np.diff(smaller.schema.offsets), axis=0)  # (slot, O)
    return replace(
        smaller,
        experts=(smaller.experts - per_slot[:, None, :, None]).astype(model.experts.dtype),
        clamps=None if smaller.clamps is None else smaller.clamps.shifted(-per_slot),
    )


def _pack(model: TableModel, *, is_quantised: bool) -> dict[str, Packed]:
    statistics, tables = require_statistics(model), _tables(model)
    arrays = {name: pack_small(a) if is_quantised and name in _LARGE else pack(a) for name, a in tables.items()}
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
    """Return the model with its numbers rounded as the page will read them."""
    read = {name: arrays[name].numbers().reshape(table.shape) for name, table in _tables(model).items()}
    gate = {name: read[f"gate.{name}"] for name in model.gate.arrays}
    return replace(model, experts=read["experts"], gate=GateTables(model.gate.kind, **gate))
