"""Repeat: the same seed gives the same model to the last bit, and nothing outside is touched."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from nae import NAEClassifier, NAERegressor
from tests.laws.assertions import assert_same_model

FAST = {"n_members": 2, "max_epochs": 3, "hidden_dim": 8, "n_experts": 3}


def data(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 3))
    return X, X[:, 0] * np.sign(X[:, 1]) + 0.1 * random.normal(size=n_rows)


@pytest.mark.parametrize("n_rows", [60, 400])  # full batches in double, mini-batches in single precision
@pytest.mark.parametrize("variant", ["nae", "nae-e", "nae-d"])
@pytest.mark.parametrize(("encoder", "engine"), [("piecewise", "auto"), ("piecewise", "torch"), ("mlp", "auto")])
def test_the_same_seed_gives_the_same_model(n_rows, variant, encoder, engine):
    X, y = data(n_rows)
    params = FAST | {"variant": variant, "encoder": encoder, "engine": engine, "batch_size": 64, "encoder_dropout": 0.1}
    one = NAERegressor(random_state=3, **params).fit(X, y)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    other = NAERegressor(random_state=3, **params).fit(X, y)
    training = one.model_.training
    assert_same_model(other.model_, one.model_)
    assert training.n_epochs == 3
    different = NAERegressor(random_state=4, **params).fit(X, y)
    with pytest.raises(AssertionError):
        assert_same_model(different.model_, one.model_)


@pytest.mark.filterwarnings("ignore:additivity=0.9 was asked for")
@pytest.mark.parametrize("n_rows", [60, 1500])  # a penalised start in double precision, and mini-batches
@pytest.mark.parametrize(
    "params",
    [
        {"n_members": 2},
        {"variant": "nae-d"},
        {"variant": "nae-e", "n_active": 2},
        {"encoder": "mlp", "n_members": 3},
        {"additivity": 0.9},
    ],
    ids=lambda params: ", ".join(f"{name} {value}" for name, value in params.items()),
)
def test_the_number_of_threads_changes_nothing(n_rows, params):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 7))
    y = X[:, 0] * np.sign(X[:, 1]) + np.sin(X[:, 2]) + 0.1 * random.normal(size=n_rows)
    params = {"n_experts": 8, "max_epochs": 2, "random_state": 0} | params
    one, *others = (NAERegressor(n_jobs=n_jobs, **params).fit(X, y).model_ for n_jobs in (1, 2, 3, 5))
    for other in others:
        assert_same_model(other, one)


@pytest.mark.slow
def test_the_threads_of_a_process_change_no_file(tmp_path):
    # 120 features are enough: without one_blas_thread, several threads write other bits than one.
    script = (
        "import sys\n"
        "import numpy as np\n"
        "from nae import NAERegressor\n"
        "X = np.random.default_rng(0).normal(size=(2000, 120))\n"
        "y = X[:, 0] * np.sign(X[:, 1])\n"
        "NAERegressor(random_state=0, n_members=2, n_experts=2, max_epochs=1).fit(X, y).model_.save(sys.argv[1])\n"
    )
    files = [tmp_path / f"{n_threads}.nae" for n_threads in (1, 2, 5)]
    for file in files:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), file.stem)
        subprocess.run([sys.executable, "-c", script, str(file)], env=os.environ | threads, check=True)
    assert len({file.read_bytes() for file in files}) == 1


def test_a_random_state_object_is_drawn_from():
    X, y = data(60)
    state = np.random.RandomState(0)
    one, other = (NAERegressor(random_state=state, **FAST).fit(X, y).predict(X) for _ in range(2))
    again = NAERegressor(random_state=np.random.RandomState(0), **FAST).fit(X, y).predict(X)
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-6


@pytest.mark.parametrize("n_rows", [60, 400])
@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_fitting_leaves_global_random_state_and_threads_as_they_were(n_rows, engine):
    X, y = data(n_rows)
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    NAEClassifier(random_state=0, n_jobs=2, engine=engine, **FAST).fit(X, y > 0)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert torch.get_num_threads() == threads
    assert torch.are_deterministic_algorithms_enabled() == deterministic


def test_threads_are_given_back_after_an_error():
    X, y = data(60)
    threads = torch.get_num_threads()

    def fail(**_):
        assert torch.get_num_threads() == 2
        raise KeyError

    with pytest.raises(KeyError):
        NAERegressor(n_jobs=2, engine="torch", callbacks=[fail], **FAST).fit(X, y)
    assert torch.get_num_threads() == threads


def test_the_fitted_estimator_is_not_changed_by_predicting():
    X, y = data(60)
    model = NAERegressor(random_state=0, **FAST).fit(X, y)
    before = {name: array.copy() for name, array in model.model_.statistics.to_arrays().items()}
    experts = model.model_.experts.copy()
    first = model.predict(X)
    model.contributions(X, with_experts=True)
    np.testing.assert_array_equal(model.predict(X), first)
    np.testing.assert_array_equal(model.model_.experts, experts)
    for name, array in model.model_.statistics.to_arrays().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.slow
def test_another_process_gives_the_same_model():
    X, y = data(60)
    script = (
        "import sys, numpy as np, torch; torch.set_num_threads(1)\n"
        "from tests.laws.test_repeat import FAST, data\n"
        "from nae import NAERegressor\n"
        "X, y = data(60)\n"
        "sys.stdout.write(NAERegressor(random_state=0, n_jobs=1, **FAST).fit(X, y).model_.experts.tobytes().hex())\n"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == NAERegressor(random_state=0, n_jobs=1, **FAST).fit(X, y).model_.experts.tobytes().hex()
