"""Who takes the steps does not decide what is learned."""

from typing import Any

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor
from nae.native import is_here, reason

pytestmark = pytest.mark.skipif(not is_here(), reason=reason())

N_ROWS, N_TEST = 900, 600
SIZES: dict[str, Any] = {"n_members": 2, "n_experts": 4, "hidden_dim": 16, "max_epochs": 60, "random_state": 0}


def make_table(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers, whole numbers, missing values, and a score with a main effect and an interaction."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4))
    X[:, 2] = random.integers(0, 5, n_rows)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 2)
    X[random.random(n_rows) < 0.1, 3] = np.nan
    return X, score


def target_of(name: str, score: np.ndarray) -> np.ndarray:
    random = np.random.default_rng(7)
    if name == "numbers":
        return score + 0.2 * random.normal(size=len(score))
    if name == "counts":
        return random.poisson(np.exp(0.7 * score)).astype(float)
    if name == "two classes":
        return random.random(len(score)) < 1 / (1 + np.exp(-3 * score))
    return np.digitize(score + 0.2 * random.normal(size=len(score)), [-0.7, 0.7])


def estimator_of(name: str, engine: str, **changes: Any) -> Any:
    if name.endswith("classes"):
        return NAEClassifier(engine=engine, **SIZES | changes)
    return NAERegressor("poisson" if name == "counts" else "squared", engine=engine, **SIZES | changes)


@pytest.mark.parametrize("name", ["numbers", "counts", "two classes", "three classes"])
def test_both_engines_learn_equally_well(name: str) -> None:
    (X, score), (unseen, other) = make_table(N_ROWS, 0), make_table(N_TEST, 1)
    scores = {}
    for engine in ("torch", "native"):
        model = estimator_of(name, engine, batch_size=128).fit(X, target_of(name, score))
        assert model.model_.training.engine == engine
        scores[engine] = model.score(unseen, target_of(name, other))
    blind = estimator_of(name, "native", additivity=1.0).fit(X[:, 3:], target_of(name, score))
    floor = blind.score(unseen[:, 3:], target_of(name, other))
    assert scores["torch"] > floor + 0.15  # something was learned
    assert scores["native"] == pytest.approx(scores["torch"], abs=0.02)


@pytest.mark.parametrize("name", ["numbers", "counts", "two classes", "three classes"])
@pytest.mark.parametrize("changes", [{}, {"additivity": 0.9}, {"gate": "low-rank", "gate_rank": 3}], ids=str)
@pytest.mark.filterwarnings("ignore:additivity=0.9 was asked for")
def test_in_double_precision_both_engines_train_the_same_model(name: str, changes: dict[str, Any]) -> None:
    X, score = make_table(120, 0)
    y = target_of(name, score)
    models = [estimator_of(name, engine, **changes | {"max_epochs": 25}).fit(X, y) for engine in ("torch", "native")]
    one, other = (model.model_ for model in models)
    np.testing.assert_allclose(other.experts, one.experts, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.decision_function(X), one.decision_function(X), rtol=1e-5, atol=1e-6)
    assert other.training.best_epoch == one.training.best_epoch
    assert other.training.validation_loss == pytest.approx(one.training.validation_loss, rel=1e-6)


def test_the_engine_is_kept_in_the_file_and_seen_after_loading(tmp_path: Any) -> None:
    X, score = make_table(120, 0)
    for engine in ("torch", "native"):
        estimator = estimator_of("numbers", engine, max_epochs=2).fit(X, score)
        estimator.save(tmp_path / "m.nae")
        loaded = NAERegressor.load(tmp_path / "m.nae")
        assert loaded.model_.training.engine == engine
        assert loaded.get_params()["engine"] == engine
