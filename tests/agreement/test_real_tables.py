"""Every evaluator on models of real tables: numbers, text with missing values, many classes. Set NAE_DATA to run."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor
from tests.agreement.catalogue import Case
from tests.agreement.evaluators import EVALUATORS, WITHIN, Evaluator, Room, assert_agrees, expected_answer

pytestmark = pytest.mark.slow
TINY = {"n_members": 2, "max_epochs": 4, "n_knots": 12, "random_state": 0}


def read(name: str, n_rows: int) -> tuple[Any, np.ndarray]:
    """Return some rows of a table and their target, or skip the test that asks for it."""
    folder = os.environ.get("NAE_DATA")
    if not folder or not (Path(folder) / f"{name}.parquet").exists():
        pytest.skip(f"NAE_DATA names no folder with {name}.parquet")
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(Path(folder) / f"{name}.parquet").sample(n_rows, random_state=0)
    return table.drop(columns="target"), table["target"].to_numpy()


@pytest.fixture(scope="module", params=["housing", "income", "letter"])
def case(request: pytest.FixtureRequest) -> Case:
    X, y = read(request.param, 2000)
    estimator = NAERegressor(**TINY) if request.param == "housing" else NAEClassifier(**TINY)
    if request.param == "income":
        X = X.mask(np.random.default_rng(0).uniform(size=X.shape) < 0.02)  # some of every column missing
    model = estimator.fit(X, y).model_
    return Case(request.param, model, {name: X[name].to_numpy()[:24] for name in X})


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda evaluator: evaluator.name)
def test_an_evaluator_agrees_on_a_real_model(evaluator: Evaluator, case: Case, room: Room) -> None:
    within = WITHIN[case.model.experts.dtype]
    assert_agrees(evaluator.answer(case, room), expected_answer(case), within=within)
