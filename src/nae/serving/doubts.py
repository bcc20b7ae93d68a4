"""Prediction intervals and sets as JSON values, and their schema."""

from typing import Any

import numpy as np

from nae.encoding.columns import Columns
from nae.tables.model import TableModel
from nae.uncertainty import Basis, PredictionInterval, PredictionSet

__all__ = ["doubts_of", "doubts_parameters", "doubts_schema"]


def doubts_of(model: TableModel, columns: Columns, *, interval: float | None, classes: float | None) -> dict[str, Any]:
    """Return the intervals or the sets of rows, for the coverage that is asked for; nothing if none is."""
    found: dict[str, Any] = {}
    if interval is not None:
        intervals = model.predict_interval(columns, interval)
        found |= _about(intervals.basis, interval) | {"intervals": _intervals(intervals)}
    if classes is not None:
        sets = model.predict_set(columns, classes)
        found |= _about(sets.basis, classes) | {"sets": _sets(sets)}
    return found


def _about(basis: Basis, coverage: float) -> dict[str, Any]:
    return {
        "coverage": coverage,
        "basis": basis.source,
        "guaranteed": basis.is_guaranteed,
        "measured": basis.measured,
    }


def _intervals(found: PredictionInterval) -> list[dict[str, Any]]:
    ends = [np.reshape(end, (len(found), -1)).tolist() for end in (found.lower, found.upper)]
    rows = [
        [dict(zip(("lower", "upper"), pair, strict=True)) for pair in zip(*row, strict=True)]
        for row in zip(*ends, strict=True)
    ]
    return [own[0] if len(own) == 1 else dict(zip(found.outputs, own, strict=True)) for own in rows]


def _sets(found: PredictionSet) -> list[list[str]]:
    return [list(own) for own in found.sets]


def doubts_parameters(model: TableModel) -> list[dict[str, Any]]:
    """Return the parameter of a request for intervals, or for sets; none if the model has no residuals for them."""
    if model.residuals is None:
        return []
    name, what = ("set", "set of classes") if model.classes else ("interval", "interval")
    share = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    description = f"Also answer with a {what} per row that holds the truth for this share of rows."
    return [{"name": name, "in": "query", "description": description, "schema": share}]


def doubts_schema(model: TableModel) -> dict[str, Any]:
    """Return the fields of an answer with intervals, or with sets."""
    fields: dict[str, Any] = {
        "coverage": {"type": "number"},
        "basis": {"type": "string", "enum": ["out-of-fold", "calibration"]},
        "guaranteed": {"type": "boolean"},
        "measured": {"type": ["number", "null"]},
    }
    if model.classes:
        return fields | {"sets": _list(_list({"type": "string", "enum": list(model.classes)}))}
    end = {"type": ["number", "null"]}  # null, because an exponential may overflow
    ends = _object({"lower": end, "upper": end})
    return fields | {"intervals": _list(ends if model.n_outputs == 1 else _object(dict.fromkeys(model.outputs, ends)))}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
