"""Small fits whose members hold out folds, on rows whose noise grows with a feature."""

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor
from nae._typing import Array
from nae.encoding import Number
from nae.tables import TableModel
from tests.laws.models import make_model

Rows = tuple[dict[str, Array], Array]
SETTINGS = {"random_state": 0, "n_members": 4, "max_epochs": 60, "n_jobs": 1}


def draw_rows(seed: int, n_rows: int) -> Rows:
    """Return rows whose target is a line, with noise that grows with ``noise`` and has nothing to do with ``idle``."""
    random = np.random.default_rng(seed)
    X = {name: random.uniform(size=n_rows) for name in ("slope", "noise", "idle")}
    return X, 3 * X["slope"] + (0.1 + X["noise"]) * random.standard_normal(n_rows)


@pytest.fixture(scope="session")
def regressor() -> NAERegressor:
    return NAERegressor(validation_size=0.25, **SETTINGS).fit(*draw_rows(0, 600))


@pytest.fixture(scope="session")
def classifier() -> NAEClassifier:
    X, y = draw_rows(0, 600)
    return NAEClassifier(validation_size=0.25, **SETTINGS).fit(X, np.digitize(y, (1.0, 2.0)))


@pytest.fixture(scope="session")
def line() -> TableModel:
    """A model that was never fitted: its score is ``x``."""
    model = make_model(np.random.default_rng(0), features=(Number("x", np.array([0.0, 1.0])),), n_experts=1)
    model.experts[:] = np.array([0.0, 1.0, 0.0, 0.0]).reshape(4, 1, 1, 1)
    model.intercept[:] = 0.0
    return model
