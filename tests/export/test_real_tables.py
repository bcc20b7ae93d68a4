"""Exports of models of real tables: numbers, text with missing values, many classes. Set NAE_DATA to run them."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor
from nae.encoding import Columns, read_table
from nae.tables import TableModel
from tests.export.test_c import assert_same_in_c
from tests.export.test_onnx import assert_same_in_onnx
from tests.export.test_sql import assert_same_in_sql

pytestmark = pytest.mark.slow
TINY = {"n_members": 2, "max_epochs": 4, "n_knots": 32, "random_state": 0}


def read(name: str, n_rows: int) -> tuple[Any, np.ndarray]:
    """Return some rows of a table and their target, or skip the test that asks for it."""
    folder = os.environ.get("NAE_DATA")
    if not folder or not (Path(folder) / f"{name}.parquet").exists():
        pytest.skip(f"NAE_DATA names no folder with {name}.parquet")
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(Path(folder) / f"{name}.parquet").sample(n_rows, random_state=0)
    return table.drop(columns="target"), table["target"].to_numpy()


@pytest.fixture(scope="module", params=["housing", "income", "letter"])
def fitted(request: pytest.FixtureRequest) -> tuple[TableModel, Columns]:
    X, y = read(request.param, 2000)
    estimator = NAERegressor(**TINY) if request.param == "housing" else NAEClassifier(**TINY)
    if request.param == "income":
        X = X.mask(np.random.default_rng(0).uniform(size=X.shape) < 0.02)  # some of every column missing
    model = estimator.fit(X, y).model_
    return model, model._explained_columns(read_table(X.iloc[:60]))


def test_a_real_model_in_onnx(fitted: tuple[TableModel, Columns]) -> None:
    assert_same_in_onnx(*fitted)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc compiles the exported source")
def test_a_real_model_in_c(fitted: tuple[TableModel, Columns], tmp_path: Path) -> None:
    assert_same_in_c(*fitted, tmp_path)


def test_a_real_model_in_sql(fitted: tuple[TableModel, Columns]) -> None:
    model, table = fitted
    assert_same_in_sql(model, table.take(np.arange(8)))
