"""The OpenAPI document of the models in service: one typed field per feature, with examples from the data."""

from typing import Any
from urllib.parse import quote

from nae import __version__
from nae.encoding.schema import Category, Feature
from nae.serving.doubts import doubts_parameters, doubts_schema
from nae.serving.examples import example_row, feature_examples
from nae.serving.limits import Limits
from nae.serving.reasons import reasons_parameters, reasons_schema
from nae.serving.registry import ServedModel
from nae.serving.rows import accepts_numbers
from nae.tables.model import TableModel

__all__ = ["make_document", "row_schema"]

_NUMBER = {"type": "number"}
_TEXT = {"type": "string"}
_OPEN: dict[str, Any] = {"type": "object"}
_GONE = "The model went out of service."


def make_document(
    models: list[ServedModel], limits: Limits, *, asks_token: bool = False, checks_host: bool = False
) -> dict[str, Any]:
    """Return the document of a server. A single model is at the root, several models are under their names."""
    paths: dict[str, Any] = {
        "/healthz": {"get": _reading("health", "Say that the server is alive.", _health())},
        "/metrics": {"get": _metrics()},
        "/models": {"get": _reading("models", "List the models in service.", _model_list())},
    }
    schemas: dict[str, Any] = {"Error": _error()}
    for served in models:
        base = "" if len(models) == 1 else f"/models/{quote(served.name, safe='')}"
        label = "" if len(models) == 1 else f"_{served.name}"
        paths |= _model_paths(served, base, label, limits)
    for path, operations in paths.items():
        for operation in operations.values():
            _add_refusals(operation, asks_token=asks_token and path != "/healthz", checks_host=checks_host)
    schemes = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if asks_token else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Neural additive experts", "version": __version__, "description": _describe(models)},
        "paths": paths,
        "components": {"schemas": schemas, **schemes},
    }


def row_schema(model: TableModel) -> dict[str, Any]:
    """Return the JSON schema of one row."""
    fields = {feature.name: _field(model, i, feature) for i, feature in enumerate(model.schema.features)}
    return {"type": "object", "properties": fields, "additionalProperties": False, "examples": [example_row(model)]}


def _field(model: TableModel, i: int, feature: Feature) -> dict[str, Any]:
    found: dict[str, Any] = {"examples": feature_examples(model, i)}
    if isinstance(feature, Category):
        is_boolean = set(feature.levels) <= {"True", "False"}
        other = ["boolean"] if is_boolean else ["number"] if accepts_numbers(feature) else []
        found["type"] = ["string", *other, "null"]
        shown = ", ".join(feature.levels[:20])
        found["description"] = (
            f"One of {len(feature.levels)} levels: {shown}{', …' if len(feature.levels) > 20 else ''}."
        )
    elif feature.is_boolean:
        found |= {"type": ["boolean", "null"], "description": "True or false."}
    else:
        low, high = feature.knots[0], feature.knots[-1]
        found |= {"type": ["number", "null"], "description": f"Seen from {low:.6g} to {high:.6g}; constant beyond."}
    if "number" in found["type"]:
        found["format"] = "double"  # larger numbers are refused
    return found


def _describe(models: list[ServedModel]) -> str:
    lines = [f"{served.name}: {served.card.sentence}." for served in models]
    return "\n\n".join([*lines, "A field that is absent or null is a missing value."])


def _model_paths(served: ServedModel, base: str, label: str, limits: Limits) -> dict[str, Any]:
    model = served.model
    causes = {
        "name": "causes",
        "in": "query",
        "description": "The number of causes that are named for each shift.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 20, "default": 3},
    }
    explain = _asking(f"explain{label}", "Explain rows: contributions, bounds, own effects and causes.")
    explain["parameters"] = [causes, _unit(model), *reasons_parameters(model)]
    predict = _asking(f"predict{label}", "Predict rows.")
    predict["parameters"] = doubts_parameters(model)
    for operation, most, answer in (
        (predict, limits.max_rows, _predictions(model)),
        (explain, limits.max_explained_rows, _explanations(model)),
    ):
        operation["requestBody"]["content"]["application/json"] = {
            "schema": _body(model, most),
            "example": {"rows": [example_row(model)]},
        }
        operation["responses"]["200"]["content"]["application/json"]["schema"] = answer
    return {
        f"{base}/predict": {"post": predict},
        f"{base}/explain": {"post": explain},
        f"{base}/schema": {"get": _about(f"schema{label}", "Return the JSON schema of a row.")},
        f"{base}/model": {"get": _about(f"model{label}", "Return the model's card: promises and effect caps.")},
    }


def _unit(model: TableModel) -> dict[str, Any]:
    return {
        "name": "unit",
        "in": "query",
        "description": "The unit of contributions; in that of the prediction they are changes from the average row.",
        "schema": {
            "type": "string",
            "enum": ["score", *(["probability"] if model.classes else []), "response"],
            "default": "score",
        },
    }


def _body(model: TableModel, most: int) -> dict[str, Any]:
    rows = {"type": "array", "minItems": 1, "maxItems": most, "items": row_schema(model)}
    return {"type": "object", "properties": {"rows": rows}, "required": ["rows"], "additionalProperties": False}


def _asking(name: str, summary: str) -> dict[str, Any]:
    errors = {
        "400": "The body is not JSON, or the request has Content-Length and Transfer-Encoding.",
        "404": _GONE,
        "413": "The body is too large.",
        "415": "The body is not announced as application/json.",
        "422": "A field or a row is wrong.",
    }
    return {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {}}},
        "responses": {"200": _json("The answer.", {})} | {status: _failed(text) for status, text in errors.items()},
    }


def _reading(name: str, summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": {"200": _json("The answer.", schema)}}


def _about(name: str, summary: str) -> dict[str, Any]:
    operation = _reading(name, summary, _OPEN)
    operation["responses"]["404"] = _failed(_GONE)
    return operation


def _add_refusals(operation: dict[str, Any], *, asks_token: bool, checks_host: bool) -> None:
    """Add the refusals that any request can get, before the server looks at its content."""
    texts = {
        "400": "The request has Content-Length and Transfer-Encoding.",
        "408": "The request did not arrive in time.",
        "503": "The server has its largest number of connections.",
    }
    if checks_host:
        texts["421"] = "The server does not have this host name."
    if asks_token:
        texts["401"] = "The token is missing or wrong."
        operation["security"] = [{"token": []}]
    operation["responses"] = {status: _failed(text) for status, text in texts.items()} | operation["responses"]


def _metrics() -> dict[str, Any]:
    text = {"description": "Prometheus text.", "content": {"text/plain": {"schema": _TEXT}}}
    return {"operationId": "metrics", "summary": "Return counters for Prometheus.", "responses": {"200": text}}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _failed(description: str) -> dict[str, Any]:
    return _json(description, {"$ref": "#/components/schemas/Error"})


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _error() -> dict[str, Any]:
    return _object(error=_TEXT, field={"type": ["string", "null"]}, row={"type": ["integer", "null"]})


def _health() -> dict[str, Any]:
    return _object(status=_TEXT, models=_list(_TEXT))


def _model_list() -> dict[str, Any]:
    return _object(models=_list(_object(name=_TEXT, version=_TEXT, sentence=_TEXT)))


def _prediction(model: TableModel) -> dict[str, Any]:
    if model.classes:
        return {"type": "string", "enum": list(model.classes)}
    value = {"type": ["number", "null"]}  # null, because an exponential may overflow
    return value if model.n_outputs == 1 else _object(**dict.fromkeys(model.outputs, value))


def _predictions(model: TableModel) -> dict[str, Any]:
    fields = {"model": _TEXT, "version": _TEXT, "predictions": _list(_prediction(model))}
    if model.classes:
        shares = {"type": "number", "minimum": 0, "maximum": 1}
        fields["probabilities"] = _list(_object(**dict.fromkeys(model.classes, shares)))
    return {"anyOf": [_object(**fields), _object(**fields, **doubts_schema(model))]}


def _explanations(model: TableModel) -> dict[str, Any]:
    total, share = "probability" if model.classes else "response", {"type": ["number", "null"]}
    in_score = _object(output=_TEXT, score=_NUMBER, intercept=_NUMBER, contributions=_contributions(_NUMBER))
    in_unit = _object(output=_TEXT, **{total: share}, average=share, contributions=_contributions(share))
    outputs = {"anyOf": [_list(in_score), _list(in_unit)]}
    answers = _list(_object(prediction=_prediction(model), outputs=outputs))
    explained = _object(model=_TEXT, version=_TEXT, explanations=answers)
    return {"anyOf": [explained, _object(model=_TEXT, version=_TEXT, **reasons_schema())]}


def _contributions(number: dict[str, Any]) -> dict[str, Any]:
    shares = dict.fromkeys(("contribution", "lower", "upper", "own", "shift"), number)
    causes = _list(_object(feature=_TEXT, part=number))
    value = {"type": ["string", "number", "boolean", "null"]}
    return _list(_object(feature=_TEXT, value=value, **shares, causes=causes))
