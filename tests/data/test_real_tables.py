"""Two real tables, default settings, few members and one seed: figures that must not get worse unnoticed.

The tables are not part of the repository. Set NAE_DATA to a folder that holds ``housing.parquet`` and
``income.parquet``, target column last and called ``target``.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from nae import NAEClassifier, NAERegressor, metrics

pytestmark = pytest.mark.slow
SINGLE = {"n_members": 1, "random_state": 0}


def read(name: str) -> tuple[Any, np.ndarray]:
    """Return the features and the target of a table, or skip the test that asks for it."""
    folder = os.environ.get("NAE_DATA")
    if not folder:
        pytest.skip("NAE_DATA is not set; it names the folder of housing.parquet and income.parquet")
    path = Path(folder) / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"NAE_DATA holds no {path.name}")
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(path)
    return table.drop(columns="target"), table["target"].to_numpy()


@pytest.fixture(scope="module")
def housing() -> dict[str, tuple[Any, np.ndarray]]:
    """Return the paper's split: a fifth for testing, an eighth of the rest for validation."""
    X, y = read("housing")
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=0.125, random_state=0)
    return {"train": (X_train, y_train), "validation": (X_valid, y_valid), "test": (X_test, y_test)}


def rmse(model: NAERegressor, X: Any, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def test_housing_is_predicted_better_than_the_paper_does(housing: dict[str, tuple[Any, np.ndarray]]) -> None:
    errors = []
    for seed in range(3):  # one alone varies: 0.4375 to 0.4538 in four seeds
        model = NAERegressor(**SINGLE | {"random_state": seed}).fit(*housing["train"], eval_set=housing["validation"])
        errors.append(rmse(model, *housing["test"]))
    assert np.mean(errors) <= 0.450  # the paper: 0.451


def test_housing_is_as_additive_as_the_dial_asks(housing: dict[str, tuple[Any, np.ndarray]]) -> None:
    model = NAERegressor(additivity=0.9, **SINGLE).fit(*housing["train"], eval_set=housing["validation"])
    assert float(metrics.additivity(model, housing["train"][0])) >= 0.87
    assert rmse(model, *housing["test"]) <= 0.50  # asking for additivity must not cost the model its sense


def test_income_is_ranked_as_well_as_by_boosted_trees() -> None:
    X, y = read("income")
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    model = NAEClassifier(n_members=4, random_state=0).fit(X, y)  # one alone: 0.922 to 0.926, by its seed
    assert roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]) >= 0.925
