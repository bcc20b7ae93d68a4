"""The reasons of rows as JSON values, and their schema."""

from typing import Any

from nae.decisions import Reasons, outcomes_of
from nae.errors import ConfigError, listed
from nae.tables.model import TableModel

__all__ = ["outcome_named", "reasons_of", "reasons_parameters", "reasons_schema"]

_NUMBERS = ("difference", "own", "context", "margin")
_NULLABLE = {"type": ["number", "null"]}


def reasons_of(found: Reasons, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return reasons with the values as they were sent."""
    table, answers = found.columns_of_reasons, [_head(found, row) for row in range(len(found))]
    sentences = [list(found.sentences(row)) for row in range(len(found))]
    for at, row in enumerate(table["row"]):
        feature = table["feature"][at]
        one = {"feature": feature, "value": rows[row].get(feature)}
        one |= {name: float(table[name][at]) for name in _NUMBERS}
        one["tied"] = bool(table["tied"][at])
        one["members"] = int(table["members_agreeing"][at])
        one["any_context"] = bool(table["place_context"][at] > 0)
        answers[row]["reasons"].append(one | {"sentence": sentences[row][len(answers[row]["reasons"])]})
    head = {"outcome": found.outcome, "reference": found.reference, "unit": found.unit, "n_members": found.n_members}
    return head | {"rows": answers}


def _head(found: Reasons, row: int) -> dict[str, Any]:
    names = ("prediction", "reference_prediction", "score", "reference_score")
    numbers = {name: float(getattr(found, name)[row]) for name in names}
    return numbers | {"reasons": []}


def outcome_named(model: TableModel, name: str | None) -> dict[str, Any]:
    """Return the arguments of the outcome called ``name``; of the first one if none is named."""
    known = outcomes_of(model)
    if name is not None and name not in known:
        raise ConfigError(f"toward must be one of {listed(tuple(known))}; got {name[:60]!r}.")
    return known[name or next(iter(known))]


def reasons_parameters(model: TableModel) -> list[dict[str, Any]]:
    """Return the parameters of a request for reasons."""
    names = list(outcomes_of(model))
    outcome = {"type": "string", "enum": names, "default": names[0]}
    whole = {"type": "integer", "minimum": 1, "maximum": 100}
    kinds = {"type": "string", "enum": ["mean", "best"], "default": "mean"}
    return [
        _parameter("reasons", "Answer with this many reasons per row.", whole),
        _parameter("toward", "What reasons are for.", outcome),
        _parameter("reference", "What reasons compare with: the average row, or the best values.", kinds),
    ]


def reasons_schema() -> dict[str, Any]:
    """Return the fields of an answer with reasons."""
    text, truth, count = ({"type": name} for name in ("string", "boolean", "integer"))
    value = {"type": ["string", "number", "boolean", "null"]}
    fields: dict[str, Any] = {"feature": text, "value": value, **dict.fromkeys(_NUMBERS, _NULLABLE)}
    fields |= {"tied": truth, "members": count, "any_context": truth, "sentence": text}
    names = ("prediction", "reference_prediction", "score", "reference_score")
    row: dict[str, Any] = {**dict.fromkeys(names, _NULLABLE), "reasons": _list(fields)}
    return {"outcome": text, "reference": text, "unit": text, "n_members": count, "rows": _list(row)}


def _list(fields: dict[str, Any]) -> dict[str, Any]:
    items = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "array", "items": items}


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}
