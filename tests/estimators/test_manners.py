"""Training people can live with: stopping, progress, continuing, devices, and errors instead of NaN."""

import json
import os
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from nae import NAEClassifier, NAERegressor, _processes
from nae._processes import count_processors, count_threads
from nae.engines.native import engine as native_engine
from nae.errors import ConfigError, DataError, TrainingError
from nae.estimators.threads import one_blas_thread, read_threads
from nae.native import is_here, reason
from nae.tables import TrainingSummary

FAST = {"n_members": 1, "n_experts": 2, "hidden_dim": 8, "max_epochs": 5, "random_state": 0}


@pytest.fixture(name="X", scope="module")
def table() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (300, 2))


@pytest.fixture(scope="module")
def y(X) -> np.ndarray:
    return X[:, 0] * np.sign(X[:, 1])


@pytest.mark.filterwarnings("ignore:additivity=0.8 was asked for")
def test_the_history_tells_every_epoch(X, y):
    history = NAERegressor(additivity=0.8, **FAST).fit(X, y).history_
    assert len(history) == 5
    assert [epoch.epoch for epoch in history] == [1, 2, 3, 4, 5]
    assert history.stopped == "ran all epochs"
    assert all(np.isfinite(history.column("loss")))
    assert history.column("seconds") == sorted(history.column("seconds"))
    assert all(0 <= value <= 1 for value in history.column("additivity"))
    assert history.column("validation")[-1] is not None
    assert json.loads(json.dumps(history.to_dict()))["best_epoch"] == history.best_epoch


def test_the_model_knows_how_it_was_trained(X, y):
    model = NAERegressor("huber", **FAST).fit(X, y)
    training = model.model_.training
    assert training.estimator == "NAERegressor"
    assert training.loss == "huber"
    assert training.n_epochs == model.n_iter_ == 5
    assert training.best_epoch == model.history_.best_epoch
    assert training.validation_loss == model.history_.best_validation
    assert TrainingSummary.from_dict(json.loads(json.dumps(training.to_dict()))) == training


def test_the_loss_falls(X, y):
    losses = NAERegressor(**FAST | {"max_epochs": 40}).fit(X[:200], y[:200]).history_.column("loss")
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("encoder", ["piecewise", "mlp"])
def test_training_stops_when_validation_does_not_improve_and_keeps_the_best(X, encoder):
    noise = np.random.default_rng(1).normal(size=300)
    params = FAST | {"max_epochs": 300, "hidden_dim": 16, "learning_rate": 1e-2}
    model = NAERegressor(encoder=encoder, early_stopping_rounds=5, **params).fit(X, noise)
    history = model.history_
    assert len(history) < 300
    assert "validation" in history.stopped
    seen = [value for value in history.column("validation") if value is not None]
    best = history[history.best_epoch - 1].validation
    assert best == min(seen)
    assert seen[-1] > best


def test_the_best_weights_are_kept_not_the_last(X):
    noise = np.random.default_rng(2).normal(size=300)
    held_out = np.arange(200, 300)
    params = FAST | {"max_epochs": 60, "hidden_dim": 32, "learning_rate": 2e-2, "validation": held_out}
    model = NAERegressor(**params).fit(X, noise)
    before = model.predict(X[held_out]) - model.model_.training.intercept_shift  # totals are matched afterwards
    kept = np.mean((before - noise[held_out]) ** 2) / noise.var()
    assert kept == pytest.approx(model.history_.best_validation, rel=1e-3)
    assert kept <= min(v for v in model.history_.column("validation") if v is not None) + 1e-6
    assert model.history_.best_epoch < len(model.history_)


def test_a_time_limit_ends_training_with_a_model(X, y):
    started = time.monotonic()
    params = FAST | {"max_epochs": 100_000, "early_stopping_rounds": 100_000}
    model = NAERegressor(time_limit=0.1, **params).fit(X[:100], y[:100])
    assert time.monotonic() - started < 5
    ends = ("time limit of 0.1 s", "time came to an end, and the step size fell to zero")
    assert model.history_.stopped in ends
    assert len(model.history_) < 100_000
    assert np.isfinite(model.predict(X)).all()


def test_callbacks_are_told_every_epoch_by_keyword(X, y):
    told = []
    NAERegressor(callbacks=[lambda **epoch: told.append(epoch)], **FAST).fit(X, y)
    assert [epoch["epoch"] for epoch in told] == [1, 2, 3, 4, 5]
    assert set(told[0]) == {"epoch", "n_epochs", "loss", "validation", "additivity", "seconds"}
    assert told[0]["n_epochs"] == 5


@pytest.mark.parametrize("answer", [True, "stop"])
def test_a_callback_may_ask_to_stop(X, y, answer):
    def after_two(*, epoch, **_):
        return answer if epoch == 2 else None

    model = NAERegressor(callbacks=[after_two], **FAST).fit(X, y)
    assert len(model.history_) == 2
    assert model.history_.stopped == "after_two asked to stop"


@pytest.mark.parametrize("callbacks", [print, [1]])
def test_callbacks_must_be_functions(X, y, callbacks):
    with pytest.raises(ConfigError, match="callbacks must be a list of functions; got"):
        NAERegressor(callbacks=callbacks, **FAST).fit(X, y)


@pytest.mark.filterwarnings("ignore:additivity=0.9 was asked for")
def test_a_progress_bar_is_shown_on_request(X, y, capsys):
    NAERegressor(verbose=True, additivity=0.9, **FAST).fit(X, y)
    shown = capsys.readouterr().out
    for word in ("epoch   5", "loss", "validation", "additivity", "0:00:0"):
        assert word in shown


def test_nothing_is_printed_unless_asked(X, y, capsys):
    NAERegressor(**FAST).fit(X, y).predict(X)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_warm_start_goes_on_where_the_last_fit_ended(X, y):
    model = NAERegressor(warm_start=True, **FAST | {"max_epochs": 30}).fit(X[:200], y[:200])
    first = model.history_.column("loss")
    model.fit(X[:200], y[:200])
    second = model.history_.column("loss")
    assert second[0] < 0.8 * first[0]
    assert all(isinstance(array, np.ndarray) for array in model._state.values())


def test_a_cold_start_forgets(X, y):
    model = NAERegressor(**FAST).fit(X, y)
    assert not hasattr(model, "_state")
    first = model.predict(X)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), first)
    model.set_params(warm_start=True).fit(X, y)
    assert hasattr(model, "_state")
    model.set_params(warm_start=False).fit(X, y)
    assert not hasattr(model, "_state")


def test_a_warm_start_goes_on_with_a_number_that_got_a_name(X, y):
    model = NAERegressor(warm_start=True, **FAST).fit(X, y)
    assert model.fit(X, pd.Series(y, name="price")).model_.outputs == ("price",)


def test_a_warm_start_keeps_knots_and_takes_new_rows(X, y):
    model = NAERegressor(warm_start=True, **FAST).fit(X[:100], y[:100])
    knots = model.model_.schema.knots.copy()
    model.fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.model_.schema.knots, knots)


def test_a_warm_start_keeps_what_new_rows_say_nothing_about(X, y):
    target = y + X[:, 0]
    model = NAERegressor(warm_start=True, **FAST | {"max_epochs": 60}).fit(X[:200], target[:200])
    grid = np.column_stack([np.linspace(-0.9, 0.9, 20), np.zeros(20)])
    before = model.predict(grid)
    without = X[200:].copy()
    without[:, 0] = np.nan
    model.set_params(max_epochs=1).fit(without, target[200:])
    assert np.corrcoef(model.predict(grid), before)[0, 1] > 0.9
    assert np.ptp(before) > 0.5


@pytest.mark.parametrize(
    "change",
    [{"n_experts": 3}, {"hidden_dim": 9}, {"n_members": 2}, {"gate": "deep"}, {"n_blocks": 1}, {"variant": "nae-d"}],
    ids=str,
)
def test_a_warm_start_of_another_shape_is_an_error(X, y, change):
    model = NAERegressor(warm_start=True, **FAST).fit(X, y)
    with pytest.raises(DataError, match=r"warm_start needs the shapes of the fit before; .* Set warm_start=False"):
        model.set_params(**change).fit(X, y)


def test_a_fit_that_fails_leaves_the_model_of_the_fit_before(X):
    y = np.where(X[:, 0] > 0, "b", "a")
    model = NAEClassifier(warm_start=True, **FAST).fit(X, y)
    before = model.predict(X)
    with pytest.raises(DataError, match="warm_start needs the features and classes of the fit before"):
        model.fit(X, np.where(X[:, 0] > 0, "d", "a"))
    assert model.classes_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_warm_start_on_other_features_or_classes_is_an_error(X):
    labels = np.resize(["a", "b", "c"], 300)
    model = NAEClassifier(warm_start=True, **FAST).fit(X, labels)
    match = "warm_start needs the features and classes of the fit before; they changed. Set warm_start=False"
    with pytest.raises(DataError, match=match):
        model.fit(X[:, :1], labels)
    with pytest.raises(DataError, match=match):
        model.fit({"a": X[:, 0], "b": X[:, 1]}, labels)
    with pytest.raises(DataError, match=match):
        model.fit(X, np.resize(["a", "b", "d"], 300))


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_are_asked_for(X, y, n_jobs):
    seen = []
    look = {"callbacks": [lambda **_: seen.append(torch.get_num_threads())]}
    NAERegressor(n_jobs=n_jobs, engine="torch", **look, **FAST).fit(X[:50], y[:50])
    assert seen[0] == (n_jobs if n_jobs > 0 else os.cpu_count())


@pytest.mark.skipif(not is_here(), reason=reason())
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_the_native_core_gets_as_many_threads(X, y, n_jobs, monkeypatch):
    seen = []
    real = native_engine.Core

    def make(shape, *given):
        seen.append(shape.n_threads)
        return real(shape, *given)

    monkeypatch.setattr(native_engine, "Core", make)
    NAERegressor(n_jobs=n_jobs, engine="native", **FAST).fit(X[:50], y[:50])
    assert seen == [n_jobs if n_jobs > 0 else count_processors()]


def test_without_a_number_of_threads_the_processors_decide_or_the_environment(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)  # two of them belong to others
    monkeypatch.setattr(_processes, "_LIMITS", Path("no such folder"))
    assert (read_threads(None), read_threads(-1), read_threads(-3), read_threads(-99)) == (6, 6, 4, 1)
    for asked, expected in (("4", 4), ("2,1", 2), (" 3 ", 3), ("99", 6), ("0", 1), ("many", 6), ("", 6)):
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
        assert read_threads(None) == count_threads() == expected
        assert read_threads(5) == 5  # who says a number gets it
        assert read_threads(-1) == 6


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, 6),
        ({"cpu.max": "9900000 100000\n"}, 6),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 6),
        ({}, 6),
    ],
)
def test_a_container_has_as_many_processors_as_it_may_use(monkeypatch, tmp_path, files, expected):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(_processes, "_LIMITS", tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert count_processors() == count_threads() == read_threads(None) == read_threads(-1) == expected


def test_a_block_that_fails_leaves_torch_as_many_threads_as_before():
    before = torch.get_num_threads()

    def fail() -> None:
        with one_blas_thread():
            torch.set_num_threads(before + 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.get_num_threads() == before


@pytest.mark.skipif(not is_here(), reason=reason())
@pytest.mark.parametrize("n_rows", [100, 300])
def test_any_number_of_threads_trains_the_same_model(X, y, n_rows):
    one, other = (NAERegressor(n_jobs=n_jobs, engine="native", **FAST).fit(X[:n_rows], y[:n_rows]) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.model_.experts, other.model_.experts)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_fits_at_once_give_the_threads_of_linear_algebra_back():
    def threads() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    with threadpool_limits(limits=3, user_api="blas"):
        before, first, second = threads(), one_blas_thread(), one_blas_thread()
        with ExitStack() as last:
            with first:
                last.enter_context(second)  # it begins in the block of the first one, and ends after it
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before


def test_no_threads_at_all_are_an_error(X, y):
    with pytest.raises(ConfigError, match="n_jobs must be a whole number but 0, or None; got 0"):
        NAERegressor(n_jobs=0, **FAST).fit(X, y)


def test_an_unknown_device_is_an_error(X, y):
    with pytest.raises(ConfigError, match="device must be 'auto', 'cpu' or 'cuda'; got 'tpu'"):
        NAERegressor(device="tpu", **FAST).fit(X, y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_an_error_with_a_hint(X, y, device):
    with pytest.raises(
        ConfigError, match=f"device='{device}' needs a CUDA GPU, and torch sees none; use device='auto'"
    ):
        NAERegressor(device=device, **FAST).fit(X, y)


@pytest.mark.parametrize(("n_rows", "max_epochs"), [(100, 20), (300, 1), (300, 2), (300, 20)])
def test_a_run_that_diverges_ends_with_an_error(X, y, n_rows, max_epochs):
    params = FAST | {"max_epochs": max_epochs, "learning_rate": 1e30, "batch_size": 64}
    with pytest.raises(TrainingError, match=r"Training diverged: .* Lower learning_rate"):
        NAERegressor(**params).fit(X[:n_rows], y[:n_rows])


@pytest.mark.parametrize("max_epochs", [1, 2])
def test_a_last_step_that_diverges_is_not_kept(X, y, max_epochs):
    params = FAST | {"max_epochs": max_epochs, "learning_rate": 1e30, "batch_size": 64}
    model = NAERegressor(**params).fit(X[:100], y[:100])
    assert np.isfinite(model.predict(X)).all()


def test_a_run_that_diverges_says_where_and_what_to_do(X, y):
    match = r"Training diverged: .* Lower learning_rate, or look for extreme values in the target"
    with pytest.raises(TrainingError, match=match):
        NAERegressor("poisson", **FAST | {"learning_rate": 1e6}).fit(X, np.exp(y) * 1e5)


@pytest.mark.parametrize("extreme", [1e4, -1e4])
def test_an_offset_beyond_reason_does_not_overflow(X, y, extreme):
    offset = np.where(np.arange(100) == 3, extreme, 0.0)
    model = NAERegressor("poisson", **FAST).fit(X[:100], np.exp(y[:100]), offset=offset)
    assert np.isfinite(model.contributions(X).values).all()


@pytest.mark.parametrize("scale", [1e-200, 1e20, 1e90])
@pytest.mark.parametrize("n_rows", [100, 300])
def test_a_target_of_any_size_is_learned_or_refused(X, y, n_rows, scale):
    try:
        model = NAERegressor(**FAST).fit(X[:n_rows], scale * y[:n_rows])
    except DataError as error:
        assert "y must be 0 in all rows, or have a mean size of at least 1e-150" in str(error)  # noqa: PT017
        assert scale == 1e-200
    except TrainingError as error:
        assert "extreme values in the target" in str(error)  # noqa: PT017
        assert scale == 1e90
    else:
        assert scale != 1e-200
        assert np.isfinite(model.predict(X)).all()


def test_predictions_do_not_need_torch(X, y, monkeypatch):
    model = NAERegressor(**FAST).fit(X, y)
    expected = model.predict(X)
    monkeypatch.setattr(torch, "as_tensor", None)
    monkeypatch.setattr(torch.nn.Module, "__call__", None)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert not any(type(value).__module__.startswith("torch") for value in vars(model).values())
