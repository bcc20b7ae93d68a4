"""Explanations as the dictionaries, tables and figures of interpret (interpretml) 0.7, which need not be installed."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from nae._typing import Array
from nae.explanation.local import LocalExplanation
from nae.explanation.outputs import score_label
from nae.explanation.serial import make_frame
from nae.explanation.shapes import FeatureShape, GlobalExplanation
from nae.plots import importance, shape, waterfall
from nae.plots.plotly.canvas import graph, new_figure, plain
from nae.plots.style import STYLE

__all__ = ["data_of", "figure_of", "selector_of"]


def selector_of(explanation: Any) -> Any:
    """Return the selector: a pandas frame for interpret up to 0.7, columns and records for later versions."""
    if isinstance(explanation, GlobalExplanation):
        columns = _global_columns(explanation)
    else:
        columns = _local_columns(explanation)
    has_frames = find_spec("interpret") is not None and find_spec("interpret.api") is not None
    if has_frames:
        return make_frame(columns, "pandas")
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {"columns": list(columns), "data": records}


def data_of(explanation: Any, key: int | None) -> Any:
    """Return the dictionary of one entry, of the overview (None) or of everything (-1)."""
    is_global = isinstance(explanation, GlobalExplanation)
    if key is None:
        return _overview(explanation) if is_global else None  # rows have no overview
    if key == -1:
        n_entries = len(explanation.features) if is_global else len(explanation)
        specific = [data_of(explanation, at) for at in range(n_entries)]
        return {"overall": data_of(explanation, None), "specific": specific, "mli": []}
    return _global_data(explanation, key) if is_global else _local_data(explanation, key)


def figure_of(explanation: Any, key: int | None) -> Any:
    """Return a plotly figure of one entry or of the overview, or None if there is no figure."""
    if isinstance(explanation, LocalExplanation):
        if key is None:
            return None
        output = 0 if explanation.link != "softmax" and len(explanation.outputs) > 1 else None
        return waterfall(explanation, key, output=output, max_features=15, backend="plotly")
    if key is None:
        return importance(explanation, max_features=15, title=explanation.name, backend="plotly")
    feature = explanation.features[key]
    if len(explanation.outputs) == 1:
        return shape(explanation, feature.name, backend="plotly")
    return _figure_of_outputs(explanation, feature)


def _global_columns(explanation: GlobalExplanation) -> dict[str, list[Any]]:
    features = explanation.features
    return {
        "Name": [feature.name for feature in features],
        "Type": ["continuous" if feature.is_number else "categorical" for feature in features],
        "# Unique": [sum(role == "value" for role in feature.roles) for feature in features],
        "Importance": [round(float(np.sqrt(np.mean(feature.importance**2))), 6) for feature in features],
        "Additivity": [round(float(feature.additivity.mean()), 3) for feature in features],
    }


def _local_columns(explanation: LocalExplanation) -> dict[str, list[Any]]:
    perf = [_perf(explanation, row) for row in range(len(explanation))]
    columns = {
        "Predicted": [one["predicted"] for one in perf],
        "Actual": [one["actual"] for one in perf],
        "PrScore": [one["predicted_score"] for one in perf],
        "AcScore": [one["actual_score"] for one in perf],
    }
    columns["Resid"] = [one["actual_score"] - one["predicted_score"] for one in perf]
    return columns


def _overview(explanation: GlobalExplanation) -> dict[str, Any]:
    size = [float(np.sqrt(np.mean(feature.importance**2))) for feature in explanation.features]
    return {"type": "univariate", "names": list(explanation.feature_names), "scores": size}


def _global_data(explanation: GlobalExplanation, key: int) -> dict[str, Any]:
    feature = explanation.features[key]
    kept = np.flatnonzero([role == "value" for role in feature.roles]) if feature.is_number else slice(None)
    edges = _edges(feature.numbers[kept]) if feature.is_number else list(feature.labels)
    squeeze = (slice(None), 0) if len(explanation.outputs) == 1 else (slice(None), slice(None))
    found = {
        "type": "univariate",
        "names": edges,
        "scores": feature.mean[kept][squeeze],
        "scores_range": (float(feature.lower.min()), float(feature.upper.max())),
        "upper_bounds": feature.upper[kept][squeeze],
        "lower_bounds": feature.lower[kept][squeeze],
        "density": {"names": edges, "scores": feature.weight[kept].tolist()},
    }
    if len(explanation.outputs) > 1:
        found["meta"] = {"label_names": list(explanation.outputs)}
    return found


def _edges(numbers: Array) -> list[float]:
    """Return the borders between knots. interpret draws a step from border to border."""
    middle = (numbers[1:] + numbers[:-1]) / 2
    return [float(numbers[0]), *middle.tolist(), float(numbers[-1])]


def _local_data(explanation: LocalExplanation, key: int) -> dict[str, Any]:
    is_one = len(explanation.outputs) == 1
    values, added = explanation.values[key], {"Intercept": explanation.intercept}
    if explanation.offset is not None:
        added["Offset"] = explanation.offset[key]
    found = {
        "type": "univariate",
        "names": list(explanation.feature_names),
        "scores": values[:, 0].tolist() if is_one else list(values),
        "values": [column[key] for column in explanation.columns],
        "extra": {
            "names": list(added),
            "scores": [float(one[0]) if is_one else one for one in added.values()],
            "values": [1] * len(added),
        },
        "perf": _perf(explanation, key),
    }
    if explanation.classes:
        found["meta"] = {"label_names": list(explanation.classes)}
    return found


def _perf(explanation: LocalExplanation, row: int) -> dict[str, Any]:
    """Return the prediction and the actual target of a row. Classes are given by position, as interpret expects."""
    prediction = explanation.prediction[row]
    truth = None if explanation.target is None else explanation.target[row]
    if not explanation.classes:
        actual = float("nan") if truth is None else float(np.ravel(truth)[0])
        said = float(prediction[0])
        return {
            "is_classification": False,
            "actual": actual,
            "predicted": said,
            "actual_score": actual,
            "predicted_score": said,
        }
    chances = np.array([1 - prediction[0], prediction[0]]) if len(explanation.classes) == 2 else prediction
    best = int(chances.argmax())
    known = {name: at for at, name in enumerate(explanation.classes)}
    at = None if truth is None else known.get(str(truth))
    return {
        "is_classification": True,
        "actual": float("nan") if at is None else at,
        "predicted": best,
        "actual_score": float("nan") if at is None else float(chances[at]),
        "predicted_score": float(chances[best]),
    }


def _figure_of_outputs(explanation: GlobalExplanation, feature: FeatureShape) -> Any:
    """Return a figure with one line per output: the mean effect on it."""
    figure = new_figure(title=feature.name, note="mean effect on every output")
    kept = [at for at, role in enumerate(feature.roles) if role == "value" or not feature.is_number]
    x = feature.numbers[kept] if feature.is_number else [plain(feature.labels[at]) for at in kept]
    for at, name in enumerate(explanation.outputs):
        figure.add_trace(
            graph().Scatter(
                x=x,
                y=feature.mean[kept, at],
                mode="lines" if feature.is_number else "markers",
                line={"color": STYLE.series[at % len(STYLE.series)]},
                name=plain(name),
            )
        )
    figure.update_yaxes(title={"text": f"effect on {score_label(explanation, None)}"})
    return figure
