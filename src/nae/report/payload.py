"""The content of the page as JSON values. ``web/src/payload.ts`` declares the same content for the page."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nae._typing import AnyArray, IntArray
from nae.encoding.columns import category_keys, numbers
from nae.encoding.schema import Category, Feature, Number
from nae.explanation.caps import effect_caps
from nae.explanation.certificates import Certificate
from nae.explanation.grid import is_listed
from nae.explanation.reference import require_statistics
from nae.explanation.seals import find_seals
from nae.explanation.shapes import value_order
from nae.quality import Quality
from nae.report.density import find_density
from nae.report.recourse import find_recourse
from nae.report.reduction import PageModel, Reduction
from nae.report.rows import ReportRows
from nae.tables.listing import list_steps
from nae.tables.lowered import lower
from nae.tables.model import TableModel

__all__ = ["VERSION", "build_payload"]

VERSION = 1
_COVERAGE = 0.9  # of the bands around the effects; the page says so
MOST_LIMITS = 15  # the page shows by how much each of so many features moves the score at most


def build_payload(
    model: TableModel,
    fitted: PageModel,
    rows: ReportRows,
    *,
    quality: Quality | None,
    title: str | None,
    max_rows: int,
    recourse: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the whole content of a page. ``model`` is the original model, ``fitted`` the one stored in the page."""
    from nae import __version__

    shown = fitted.model
    caps = effect_caps(model).caps
    features = shown.schema.features
    listed = tuple(_is_listed(*pair) for pair in zip(features, rows.columns.arrays, strict=True))
    return {
        "version": VERSION,
        "library": __version__,
        "title": title or f"How the model predicts {rows.target_name}",
        "target": rows.target_name,
        "features": [
            _feature(shown, i, feature) | sure | {"isListed": listed[i]}
            for i, (feature, sure) in enumerate(zip(features, _sure(shown), strict=True))
        ],
        "outputs": list(model.outputs),
        "classes": list(model.classes),
        "link": model.link.name,
        "steps": list_steps(lower(shown)),
        "nExperts": shown.n_experts,
        "nMembers": shown.n_members,
        "isDouble": shown.experts.dtype.itemsize > 4,
        "arrays": {name: packed.to_json() for name, packed in fitted.arrays.items()},
        "caps": [{"adds": cap.adds, "takes": cap.takes, "outputs": list(cap.outputs)} for cap in caps],
        "never": _never(model),
        "training": _training(model),
        "quality": None if quality is None else _quality(quality),
        **_offset_note(model, rows),
        "rows": _rows(shown, rows, max_rows),
        **({} if recourse is None else {"recourse": find_recourse(model, rows, _index(rows, max_rows), recourse)}),
        "density": _density(shown, rows, listed) if max_rows else None,
        "reduction": None if fitted.reduction is None else _reduction(fitted.reduction),
    }


def _never(model: TableModel) -> dict[str, Any]:
    """Return what is proven: every promise, further seals, and how far the most important features move a score."""
    importance = require_statistics(model).variance.max(axis=1)
    shown = np.argsort(-importance, kind="stable")[:MOST_LIMITS].tolist()
    found, schema = find_seals(model, shown), model.schema
    return {
        "promises": [_promise(model, one) for one in found.promises],
        "found": [{"kind": one.kind, "features": [schema.index(name) for name in one.features]} for one in found.found],
        "shown": shown,
        "limits": [
            {
                "feature": schema.index(one.feature),
                "output": model.outputs.index(one.output),
                "effect": one.effect if np.isfinite(one.effect) else None,
                "promised": one.promised,
            }
            for one in found.limits
        ],
        "note": found.note,
    }


def _promise(model: TableModel, one: Certificate) -> dict[str, Any]:
    feature = model.schema.features[model.schema.index(one.feature)] if one.feature else None
    knots = [float(knot) for knot in feature.knots[[0, -1]]] if isinstance(feature, Number) else None
    return {
        "kind": one.kind,
        "way": one.way,
        "feature": model.schema.index(one.feature) if one.feature else None,
        "verdict": one.verdict,
        "sentence": one.sentence,
        "limit": one.limit,
        "bound": one.bound if np.isfinite(one.bound) else None,
        "range": knots,
    }


def _sure(model: TableModel) -> list[dict[str, Any]]:
    """Return where the true effects of every feature lie, if there is evidence, and whether it is more than noise."""
    if model.evidence is None:
        return [{} for _ in model.schema.features]
    shapes = model.explain_global().features
    if not model.evidence.has_bands:
        return [{"isNoise": shape.is_noise} for shape in shapes]
    mean = require_statistics(model).mean.astype(np.float64)
    lower, upper = ([[_number(value) for value in row] for row in end] for end in model.evidence.band(mean, _COVERAGE))
    slots = [model.schema.slots(i) for i in range(model.n_features)]
    return [
        {"sure": {"lower": lower[own], "upper": upper[own]}, "isNoise": shape.is_noise}
        for own, shape in zip(slots, shapes, strict=True)
    ]


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def _feature(model: TableModel, i: int, feature: Feature) -> dict[str, Any]:
    is_category = isinstance(feature, Category)
    return {
        "name": feature.name,
        "kind": feature.kind,
        "integral": False if isinstance(feature, Category) else feature.integral,
        "hasMissing": feature.has_missing,
        "nKnots": 0 if is_category else feature.n_values,
        "levels": list(feature.levels) if isinstance(feature, Category) else [],
        "rare": list(feature.rare) if isinstance(feature, Category) else [],
        "order": value_order(feature, require_statistics(model).mean[model.schema.slots(i)]).tolist(),
    }


def _is_listed(feature: Feature, array: AnyArray) -> bool:
    """Return whether a number has so few values that each can be shown."""
    if isinstance(feature, Category) or feature.is_boolean:
        return False
    return is_listed(feature.knots, numbers(array, feature.name).clip(feature.knots[0], feature.knots[-1]))


def _density(model: TableModel, rows: ReportRows, listed: tuple[bool, ...]) -> dict[str, Any]:
    return find_density(model, model.schema.locate(rows.columns, dtype=model.experts.dtype), listed).to_json()


def _training(model: TableModel) -> dict[str, Any]:
    training = model.training
    found = {
        "nRows": training.n_rows,
        "nHeldOut": training.n_validation_rows,
        "loss": training.loss,
        "heldOutLoss": training.validation_loss,
    }
    return {name: value for name, value in found.items() if value is not None}


def _quality(quality: Quality) -> dict[str, Any]:
    return {
        "nRows": quality.n_rows,
        "baseline": f"always predicting {quality.baseline}",
        "scores": [
            {
                "name": one.title,
                "better": one.better,
                "model": one.value,
                "baseline": one.baseline,
                "interval": one.interval,
            }
            for one in quality
        ],
    }


def _offset_note(model: TableModel, rows: ReportRows) -> dict[str, str]:
    """Return a note about the offset, if the model has one."""
    if model.offset_names is None and rows.offset is None:
        return {}
    named = f" ({', '.join(model.offset_names)})" if model.offset_names else ""
    zero = "an offset of 0, which is an exposure of 1" if model.link.name == "log" else "an offset of 0"
    own = "The rows below are predicted with their own offset" if rows.offset is not None else ""
    said = f"{own}; what if predicts for {zero}." if own else f"This page predicts for {zero}."
    return {"offsetNote": f"An offset{named} is added to the score, and is no feature. {said}"}


def _reduction(reduction: Reduction) -> dict[str, Any]:
    return {
        "members": reduction.members,
        "ofMembers": reduction.of_members,
        "knotStride": reduction.knot_stride,
        "largestDifference": reduction.largest_difference,
        "largestPredictionDifference": reduction.largest_prediction_difference,
        "nRows": reduction.n_rows,
    }


def _index(rows: ReportRows, max_rows: int) -> IntArray:
    """Return which rows stand in the page."""
    n_shown = min(max_rows, len(rows))
    return np.linspace(0, len(rows) - 1, n_shown).round().astype(np.int64) if n_shown else np.arange(0)


def _rows(model: TableModel, rows: ReportRows, max_rows: int) -> dict[str, Any]:
    index = _index(rows, max_rows)
    columns = [
        _texts(array[index])
        if isinstance(feature, Category)
        else {"numbers": _numbers(numbers(array, feature.name)[index])}
        for feature, array in zip(model.schema.features, rows.columns.arrays, strict=True)
    ]
    target = [] if rows.target is None else [_numbers(column) for column in rows.target[index].T]
    offset = None if rows.offset is None else rows.offset[index]
    score = model.decision_function(rows.columns.take(index), offset=offset).reshape(len(index), model.n_outputs)
    return {
        "nTotal": len(rows),
        "number": rows.row_numbers[index].tolist(),
        "columns": columns,
        "target": target,
        "score": score.tolist(),
    }


def _numbers(values: AnyArray) -> list[float | None]:
    """Return JSON numbers: null for missing, and the largest float for infinity, which lies in the same cell."""
    largest = float(np.finfo(np.float64).max)
    return [None if np.isnan(value) else min(max(value, -largest), largest) for value in values.tolist()]


def _texts(column: AnyArray) -> dict[str, Any]:
    keys = category_keys(column).tolist()
    texts = sorted({key for key in keys if key is not None})
    position = {text: i for i, text in enumerate(texts)}
    return {"texts": texts, "codes": [-1 if key is None else position[key] for key in keys]}
