"""The answers of a model: predictions and explanations as JSON values."""

import json
import math
from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns
from nae.explanation.local import LocalExplanation
from nae.tables.model import TableModel

__all__ = ["encode", "explain_rows", "predict_rows"]


def predict_rows(model: TableModel, cells: Cells) -> dict[str, Any]:
    """Return the predictions of rows. For a classifier, they include the probabilities of the classes."""
    if not model.classes:
        value = model.predict(cells)
        if value.ndim == 1:
            return {"predictions": value.tolist()}
        return {"predictions": [dict(zip(model.outputs, row, strict=True)) for row in value.tolist()]}
    probability = model.predict_proba(cells)
    best = model.choose(probability)
    return {
        "predictions": [model.classes[i] for i in best],
        "probabilities": [dict(zip(model.classes, row, strict=True)) for row in probability.tolist()],
    }


def explain_rows(
    model: TableModel, columns: Columns, rows: list[dict[str, Any]], *, n_causes: int, unit: str = "score"
) -> dict[str, Any]:
    """Return all contributions of rows, each with its bounds, its own effect and the causes of its shift."""
    found = model.explain_local(columns, n_causes=n_causes, unit=unit)
    answers = []
    for at, row in enumerate(rows):
        outputs = [_output(found, at, o, row, model.feature_names) for o in range(model.n_outputs)]
        answers.append({"prediction": _prediction(model, found.prediction[at]), "outputs": outputs})
    return {"explanations": answers}


def encode(content: dict[str, Any]) -> bytes:
    """Return JSON. A number that is not finite, such as an overflowing exponential, becomes null."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _prediction(model: TableModel, mean: Array) -> Any:
    if not model.classes:
        values = np.ravel(mean).tolist()
        return values[0] if len(values) == 1 else dict(zip(model.outputs, values, strict=True))
    probability = mean if len(mean) > 1 else np.array([1 - mean[0], mean[0]])
    return model.classes[int(model.choose(probability[None])[0])]


def _output(
    found: LocalExplanation, at: int, output: int, row: dict[str, Any], names: tuple[str, ...]
) -> dict[str, Any]:
    values, own = found.values[at, :, output], found.own[at, :, output]
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    contributions = [
        {
            "feature": names[i],
            "value": row.get(names[i]),
            "contribution": float(values[i]),
            "lower": float(found.lower[at, i, output]),
            "upper": float(found.upper[at, i, output]),
            "own": float(own[i]),
            "shift": float(values[i] - own[i]),
            "causes": [
                {"feature": names[cause], "part": part}
                for cause, part in zip(
                    found.causes[at, i, output].tolist(), found.parts[at, i, output].tolist(), strict=True
                )
            ],
        }
        for i in order
    ]
    total, base = ("score", "intercept") if found.unit == "score" else (found.unit, "average")
    return {
        "output": found.outputs[output],
        total: float(found.score[at, output]),
        base: float(found.intercept[output]),
        "contributions": contributions,
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
