from collections.abc import Callable

import numpy as np
import pytest

from nae import datasets
from nae.encoding import read_table
from nae.errors import ConfigError

ALL = [datasets.unimodal, datasets.multimodal, datasets.modality, datasets.correlated, datasets.generic]
Simulation = Callable[..., tuple[datasets.Table, np.ndarray]]

each = pytest.mark.parametrize("simulate", ALL, ids=lambda simulate: simulate.__name__)


@each
def test_a_simulation_is_a_table_with_one_target_per_row(simulate: Simulation) -> None:
    X, y = simulate(50)
    columns = read_table(X)
    assert columns.names == tuple(X)
    assert columns.n_rows == len(y) == 50


@each
def test_the_same_seed_gives_the_same_table_and_another_seed_another(simulate: Simulation) -> None:
    (X, y), (same, same_y) = simulate(50, seed=3), simulate(50, seed=3)
    np.testing.assert_array_equal(y, same_y)
    for name in X:
        np.testing.assert_array_equal(X[name], same[name])
    assert not np.array_equal(y, simulate(50, seed=4)[1])


@each
def test_the_noise_has_the_size_asked_for(simulate: Simulation) -> None:
    noisy, clean = simulate(5000, noise=0.3, seed=1), simulate(5000, noise=0.0, seed=1)
    for name in noisy[0]:
        np.testing.assert_array_equal(noisy[0][name], clean[0][name])
    assert (noisy[1] - clean[1]).std() == pytest.approx(0.3, rel=0.05)


def test_without_noise_the_tables_follow_their_formulas() -> None:
    X, y = datasets.unimodal(100, noise=0)
    np.testing.assert_allclose(y, X["x1"] - 0.5 + np.sin(4 * np.pi * X["x1"]))
    X, y = datasets.multimodal(100, noise=0)
    np.testing.assert_allclose(y, X["x1"] - 0.5 + X["x2"] * np.sin(4 * np.pi * X["x1"]))
    X, y = datasets.modality(100, n_categorical=2, noise=0)
    np.testing.assert_allclose(y, X["x1"] - 0.5 + (X["x2"] + X["x3"]) / 2 * np.sin(4 * np.pi * X["x1"]))
    X, y = datasets.correlated(100, noise=0)
    np.testing.assert_allclose(y, X["x2"] * np.sin(4 * np.pi * X["x1"]) + X["x2"])
    X, y = datasets.generic(100, noise=0)
    product = 2 * np.sin(np.pi * X["x1"]) * np.cos(np.pi * X["x2"])
    np.testing.assert_allclose(y, product + 0.5 * X["x1"] ** 2 + 0.5 * X["x2"] ** 2)


@pytest.mark.parametrize("share", [0.5, 0.25, 0.05, 0.01])
def test_the_minority_has_its_share(share: float) -> None:
    X, _ = datasets.multimodal(100_000, minority=share)
    assert (X["x2"] == 1).mean() == pytest.approx(share, abs=0.005)
    assert set(np.unique(X["x2"])) == {-1.0, 1.0}


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_second_feature_follows_the_first_as_strongly_as_asked(rho: float) -> None:
    X, _ = datasets.correlated(100_000, rho=rho)
    slope = np.polyfit(X["x1"], (X["x2"] + 1) / 2, 1)[0]
    assert slope == pytest.approx(rho, abs=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.unimodal(0), r"n_rows must be at least 1; got 0\."),
        (lambda: datasets.generic(noise=-1), r"noise must not be negative; got -1\."),
        (lambda: datasets.multimodal(minority=5), r"minority must be in \[0, 1\]; got 5\."),
        (lambda: datasets.correlated(rho=1.5), r"rho must be in \[0, 1\]; got 1\.5\."),
        (lambda: datasets.modality(n_categorical=0), r"n_categorical must be at least 1; got 0\."),
    ],
)
def test_a_parameter_out_of_range_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()
