"""Comparing an export with the model it was made from."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from nae._typing import Array
from nae.encoding import Columns, Number
from nae.encoding.columns import category_keys, numbers
from nae.links import LINKS
from nae.tables import TableModel
from nae.tables.gates import GATES
from tests.laws.models import make_model, make_table

__all__ = ["CASES", "Answer", "assert_answers", "case", "expected_answer"]

SHAPES: list[dict[str, Any]] = [
    {},
    {"n_experts": 1},
    {"n_outputs": 3, "n_members": 2},
    {"n_experts": 4, "n_active": 2},
    {"n_experts": 4, "n_active": 2, "routing": "equal", "n_outputs": 2},
]
CASES = [pytest.param({"gate": gate, **shape}, id=f"{gate}-{i}") for gate in GATES for i, shape in enumerate(SHAPES)]


@dataclass(frozen=True, eq=False)
class Answer:
    """What an export says of some rows; contributions and bounds (row, feature, output)."""

    score: Array
    prediction: Array
    contribution: Array
    lower: Array
    upper: Array


def case(shape: dict[str, Any], *, seed: int = 0, n_rows: int = 25) -> tuple[TableModel, Columns]:
    """Return a random model of six features and rows with everything a cell can meet."""
    random = np.random.default_rng(seed)
    model = make_model(random, n_features=6, dtype=np.float32, **shape)
    if model.n_outputs == 1:
        model = replace(model, link=LINKS["logit"], classes=("no", "yes"))
    return model, make_table(random, model.schema, n_rows)


def expected_answer(model: TableModel, table: Any) -> Answer:
    """Return what the model itself says."""
    found = model.contributions(table)
    shape = (len(found), model.n_features, model.n_outputs)
    prediction = model.predict_proba(table) if model.classes else model.predict(table)
    return Answer(
        score=found.score.reshape(len(found), -1),
        prediction=np.asarray(prediction).reshape(len(found), -1),
        contribution=found.values.reshape(shape),
        lower=found.lower.reshape(shape),
        upper=found.upper.reshape(shape),
    )


def assert_answers(found: Answer, expected: Answer, *, within: float = 1e-5) -> None:
    """Check that all five arrays agree."""
    for name in ("contribution", "lower", "upper", "score", "prediction"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=0, atol=within, err_msg=f"{name} differs"
        )


def plain_columns(model: TableModel, table: Columns) -> dict[str, list[Any]]:
    """Return the columns as lists of floats (NaN for missing) and texts (None for missing)."""
    pairs = zip(model.schema.features, table.arrays, strict=True)
    return {
        feature.name: (numbers(column, feature.name) if isinstance(feature, Number) else category_keys(column)).tolist()
        for feature, column in pairs
    }
