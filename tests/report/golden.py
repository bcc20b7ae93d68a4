"""Golden tables for the page's evaluator: small random models of every gate, and what Python says about their rows.

``python -m tests.report.golden`` writes them anew into ``web/test/golden.json``.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from nae.encoding import Category, Columns
from nae.explanation.interaction import explain_interaction
from nae.plots.layouts.shape import lay_out_shape
from nae.report.density import find_density
from nae.report.payload import build_payload
from nae.report.reduction import PAGE_LIMIT, fit_into_page
from nae.report.rows import ReportRows
from nae.tables import TableModel
from tests.explanation.examples import explained_model
from tests.report.weekdays import weekday_model

__all__ = ["PATH", "SHAPES", "build_golden"]

PATH = Path(__file__).parents[2] / "web" / "test" / "golden.json"

SHAPES: tuple[dict[str, Any], ...] = (
    {"gate": "additive", "n_members": 2},
    {"gate": "additive", "n_members": 2, "dtype": np.float32, "n_experts": 5, "n_active": 2},
    {"gate": "additive", "routing": "equal", "n_active": 2, "n_experts": 4},
    {"gate": "low-rank", "n_members": 3, "dtype": np.float32, "n_features": 4},
    {"gate": "deep", "n_members": 2, "n_features": 4},
    {"gate": "diagonal", "n_members": 2},
    {"gate": "additive", "n_outputs": 3, "n_members": 2, "dtype": np.float32},
    {"gate": "additive", "n_experts": 1},
    {"gate": "low-rank", "n_members": 3, "dtype": np.float32, "limit": 1000},
    {"gate": "additive", "n_features": 1},
    {"gate": "additive", "n_members": 2, "is_clamped": True},
    {"gate": "low-rank", "n_members": 3, "dtype": np.float32, "limit": 1000, "is_clamped": True},
)


def build_golden() -> list[dict[str, Any]]:
    """Return one case per shape, and one of few values."""
    few, columns = weekday_model(n_rows=70)
    return [*(_shaped(seed, shape) for seed, shape in enumerate(SHAPES, start=1)), _case("few values", few, columns)]


def _shaped(seed: int, shape: dict[str, Any]) -> dict[str, Any]:
    name = " ".join(str(getattr(value, "__name__", value)) for value in shape.values())
    asked, columns = explained_model(seed, **{key: value for key, value in shape.items() if key != "limit"})
    return _case(name, asked, columns, limit=shape.get("limit", PAGE_LIMIT))


def _case(name: str, asked: TableModel, columns: Columns, *, limit: int = PAGE_LIMIT) -> dict[str, Any]:
    rows = ReportRows(columns, None, "y", np.arange(1, columns.n_rows + 1))
    fitted = fit_into_page(asked, columns, limit=limit)
    model = fitted.model
    local = model.explain_local(columns, n_causes=model.n_features)
    content = build_payload(asked, fitted, rows, quality=None, title=None, max_rows=columns.n_rows)
    return {
        "name": name,
        "tolerance": 1e-6 if model.experts.dtype == np.float32 else 1e-10,
        "payload": content,
        "values": local.values.tolist(),
        "lower": local.lower.tolist(),
        "upper": local.upper.tolist(),
        "own": local.own.tolist(),
        "score": local.score.tolist(),
        "prediction": local.prediction.tolist(),
        "parts": _square(model, local.causes, local.parts),
        "interaction": _interaction(model, columns),
        "inner": _inner(model),
        "labels": [list(feature.labels) for feature in model.schema.features],
        "bars": _bars(model, columns),
        "panels": _panels(model),
        "density": _density(model, columns, content),
    }


def _square(model: TableModel, causes: np.ndarray, parts: np.ndarray) -> list[Any]:
    """Return the parts by cause, (row, feature, output, cause)."""
    out = np.zeros((*parts.shape[:3], model.n_features))
    np.put_along_axis(out, causes, parts, axis=-1)
    return out.tolist()


def _interaction(model: TableModel, columns: Columns) -> dict[str, Any] | None:
    """Return the map of the first two features; none for one, or a deep gate: it averages over other contexts."""
    if model.gate.kind == "deep" or model.n_features < 2:
        return None
    found = explain_interaction(model, model.feature_names[:2], resolution=7)
    is_number = [not isinstance(feature, Category) for feature in model.schema.features[:2]]
    return {
        "numbers": [
            [None if np.isnan(value) else value for value in axis.numbers.tolist()] if number else None
            for axis, number in zip(found.axes, is_number, strict=True)
        ],
        "contributions": found.contributions[..., 0].tolist(),
        "pure": found.pure[..., 0].tolist(),
    }


def _inner(model: TableModel) -> list[list[list[float]] | None]:
    """Return per feature where most effects begin and end, as the plots draw them; None for what is no number."""
    explanation = model.explain_global()
    layouts = [lay_out_shape(explanation, name, output=0) for name in model.feature_names]
    return [[one.low.tolist(), one.high.tolist()] if one.is_number else None for one in layouts]


def _bars(model: TableModel, columns: Columns) -> list[list[list[float]] | None]:
    """Return per feature the bars of its values, as the plots draw them; None where they are not drawn one by one."""
    explanation = model.explain_global(columns)
    layouts = [lay_out_shape(explanation, name, output=0) for name in model.feature_names]
    return [
        [[b.left, b.right, b.height] for b in one.density] if one.is_few and len(one.x) else None for one in layouts
    ]


def _panels(model: TableModel) -> list[float | None] | None:
    """Return the values of the first feature, a number, at which three-way panels hold it."""
    if model.n_features < 3 or model.gate.kind == "deep" or isinstance(model.schema.features[0], Category):
        return None
    first, *others = model.feature_names[:3]
    numbers = explain_interaction(model, (*others, first), resolution=7).axes[2].numbers
    return [None if np.isnan(value) else value for value in numbers.tolist()]


def _density(model: TableModel, columns: Columns, content: dict[str, Any]) -> list[list[int]]:
    """Return per pair of the page how near rows are, the second's places innermost."""
    listed = tuple(feature["isListed"] for feature in content["features"])
    return [levels.ravel().tolist() for levels in find_density(model, model.cells(columns), listed).levels]


if __name__ == "__main__":
    PATH.write_text(json.dumps(build_golden(), separators=(",", ":")) + "\n", encoding="ascii")
