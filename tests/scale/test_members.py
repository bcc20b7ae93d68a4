"""Members that are trained apart: the jobs run here, one after another, by a stand-in for Ray."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import nae
from nae import NAEClassifier, NAERegressor, TableModel
from nae._typing import Array
from nae.engines import Place
from nae.errors import ConfigError, TrainingError
from nae.estimators.fitting import fit_model as fit_apart
from nae.native import is_here, reason
from nae.scale import fit_members
from nae.scale.members import _share_out
from nae.scale.merge import merge_histories, merge_models
from nae.training.history import Epoch, History

TINY: dict[str, Any] = {"n_experts": 3, "n_knots": 8, "hidden_dim": 8, "max_epochs": 4, "random_state": 0}


class HereAndNow:
    """What of Ray is needed, in this process."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.cancelled: list[Any] = []

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 4.0}

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        self.options = options

        def wrap(function: Any) -> Any:
            function.remote = lambda *given: lambda: function(*given)
            return function

        return wrap

    def get(self, jobs: list[Any]) -> list[Any]:
        return [job() for job in jobs]

    def cancel(self, job: Any, *, force: bool) -> None:
        assert force
        self.cancelled.append(job)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> HereAndNow:
    found = HereAndNow()

    @contextmanager
    def connect(_: str | None) -> Iterator[HereAndNow]:
        yield found

    monkeypatch.setattr("nae.scale.members.connect", connect)
    return found


def make_rows(n_rows: int = 600) -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, 3))
    return X, X[:, 0] * np.sign(X[:, 1]) + 0.1 * random.standard_normal(n_rows)


def test_quantiles_trained_apart_are_in_order_together(ray: HereAndNow) -> None:
    X, y = make_rows()
    estimator = NAERegressor("quantile", quantile=[0.1, 0.5, 0.9], **TINY, n_members=2)
    model = fit_members(estimator, X, y).model_
    assert model.n_members == 2
    assert all(one.verdict == "proven" for one in model.certify(ordered=True).certificates)
    below = (y[:, None] < model.predict(X)).mean(axis=0)
    np.testing.assert_allclose(below, [0.1, 0.5, 0.9], atol=0.005)


def member(model: TableModel, number: int) -> TableModel:
    """Return one member of a model as a model."""
    gate, one = model.gate, slice(number, number + 1)
    mix = None if gate.mix is None else gate.mix[one]
    mix_bias = None if gate.mix_bias is None else gate.mix_bias[..., one]
    gate = replace(gate, terms=gate.terms[..., one], bias=gate.bias[..., one], mix=mix, mix_bias=mix_bias)
    return replace(model, experts=model.experts[..., one], gate=gate)


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep"])
def test_a_model_taken_apart_and_merged_is_the_same(gate: str) -> None:
    X, y = make_rows()
    model = NAERegressor(n_members=3, gate=gate, gate_rank=5, **TINY).fit(X, y).model_
    merged = merge_models([member(model, number) for number in range(3)])
    assert merged.clamps is None  # they hold for the mean, not for a member
    model = replace(model, clamps=None)
    np.testing.assert_array_equal(merged.experts, model.experts)
    expected, found = model.contributions(X), merged.contributions(X)
    for name in ("values", "lower", "upper", "intercept"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-7)
    two_and_one = merge_models([merge_models([member(model, 0), member(model, 1)]), member(model, 2)])
    np.testing.assert_allclose(two_and_one.predict(X), model.predict(X), rtol=1e-6, atol=1e-7)


def test_members_trained_apart_make_an_estimator_like_any_other(ray: HereAndNow, tmp_path: Path) -> None:
    X, y = make_rows()
    estimator = fit_members(NAERegressor(n_members=3, **TINY), X, y)
    assert isinstance(estimator, NAERegressor)
    together = NAERegressor(n_members=3, **TINY).fit(X, y)
    assert estimator.model_.n_members == 3
    np.testing.assert_array_equal(estimator.model_.schema.knots, together.model_.schema.knots)
    same = ("n_rows", "n_validation_rows", "data_sha256", "loss", "estimator", "device")
    for name in same:
        assert getattr(estimator.model_.training, name) == getattr(together.model_.training, name), name
    assert len({estimator.model_.experts[..., one].tobytes() for one in range(3)}) == 3  # each begins elsewhere
    assert estimator.model_.clamps is not None
    found = estimator.contributions(X)
    np.testing.assert_allclose(found.values.mean(axis=0), 0.0, atol=1e-6)  # centred as a whole
    np.testing.assert_allclose(found.values.sum(axis=1) + found.intercept, estimator.predict(X), atol=1e-6)
    estimator.save(tmp_path / "m.nae")
    loaded = nae.load(tmp_path / "m.nae")
    np.testing.assert_array_equal(loaded.predict(X), estimator.model_.predict(X))
    assert loaded.explain_global().additivity == pytest.approx(estimator.explain_global().additivity)
    assert NAERegressor.load(tmp_path / "m.nae").history_.best_validation == estimator.history_.best_validation
    assert ray.options == {"num_cpus": 1, "num_gpus": 0.0, "resources": {}}


def test_a_member_alone_does_what_it_would_do_among_others(ray: HereAndNow) -> None:
    X, y = make_rows()
    shared: dict[str, Any] = {"eval_set": (X[:200], y[:200]), "sample_weight": np.linspace(0.5, 1.5, len(y))}
    alone = NAERegressor(n_members=1, **TINY).fit(X, y, **shared)
    found = fit_members(NAERegressor(n_members=1, **TINY), X, y, **shared)
    np.testing.assert_array_equal(found.model_.experts, alone.model_.experts)
    np.testing.assert_array_equal(found.predict(X), alone.predict(X))
    assert found.history_.best_validation == alone.history_[alone.history_.best_epoch - 1].validation
    assert found.history_.standard_error == pytest.approx(alone.history_.standard_error)


def test_each_member_holds_out_its_own_fold(ray: HereAndNow, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows()
    held_out: list[Array] = []
    real = fit_apart

    def fit_model(prepared: Any, *given: Any, **options: Any) -> Any:
        held_out.append(np.flatnonzero(prepared.source.fold == 0))
        return real(prepared, *given, **options)

    monkeypatch.setattr("nae.scale.members.fit_model", fit_model)
    fit_members(NAERegressor(n_members=5, validation_size=0.25, **TINY), X, y)
    assert [len(rows) for rows in held_out] == [150] * 5
    assert sorted(np.concatenate(held_out[:4]).tolist()) == list(range(600))
    np.testing.assert_array_equal(held_out[4], held_out[0])  # more members than folds begin anew


@pytest.mark.parametrize(
    ("asked", "resources", "expected"),
    [
        ({}, {"cpu": 1, "gpu": 0.5}, ("torch", "cuda", 0.5)),
        ({"engine": "native"}, {"cpu": 1, "gpu": 0.5}, ("native", "cpu", 0)),
        ({"engine": "torch"}, {"cpu": 1}, ("torch", "cpu", 0)),
        ({}, {"cpu": 1}, ("native", "cpu", 0)),
    ],
)
def test_members_are_trained_where_the_jobs_are_and_not_where_this_process_is(
    ray: HereAndNow,
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, Any],
    resources: dict[str, float],
    expected: tuple[str, str, float],
) -> None:
    if expected[0] == "native" and not is_here():
        pytest.skip(reason())
    X, y = make_rows()
    monkeypatch.setattr("nae.estimators.prepared.choose_place", lambda *_, **__: Place("torch", "cuda", "it is here"))
    places: list[Place] = []

    def fit_model(prepared: Any, *given: Any) -> Any:
        places.append(prepared.place)
        return fit_apart(replace(prepared, place=Place("torch", "cpu", "a stand-in")), *given)

    monkeypatch.setattr("nae.scale.members.fit_model", fit_model)
    model = fit_members(NAERegressor(n_members=2, **asked, **TINY), X, y, resources=resources).model_
    assert [(place.engine, place.device) for place in places] == [expected[:2]] * 2
    assert (model.training.engine, model.training.device, ray.options["num_gpus"]) == expected


@pytest.mark.slow
def test_classes_weights_and_the_path_to_additivity_work_apart(ray: HereAndNow) -> None:
    X, y = make_rows()
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    longer = TINY | {"max_epochs": 60}  # until there is something that is not additive
    estimator = NAEClassifier(n_members=2, additivity="auto", class_weight="balanced", **longer)
    fit_members(estimator, X, labels, sample_weight=np.linspace(1, 2, len(y)))
    assert estimator.model_.classes == ("a", "b", "c")
    assert sum(point.is_chosen for point in estimator.additivity_path_) == 1
    assert len(estimator.additivity_path_) > 1
    assert set(estimator.predict(X)) <= {"a", "b", "c"}
    weight = np.linspace(1, 2, len(y))
    totals = weight @ (labels[:, None] == estimator.classes_)
    np.testing.assert_allclose(weight @ estimator.predict_proba(X), totals, rtol=1e-6)


@pytest.mark.slow
def test_a_second_fit_goes_on_where_the_first_one_ended(ray: HereAndNow) -> None:
    X, y = make_rows(1100)  # a smaller table would keep a share of what it learned, and of that a share again
    estimator = NAERegressor(n_members=2, warm_start=True, **{**TINY, "learning_rate": 1e-9})
    before = fit_members(estimator, X, y).model_.experts
    np.testing.assert_allclose(fit_members(estimator, X, y).model_.experts, before, atol=1e-5)


def test_the_history_of_all_members_ends_with_what_they_kept() -> None:
    def history(*validation: float, best: int) -> History:
        epochs = [Epoch(i + 1, 1.0, value, None, float(i)) for i, value in enumerate(validation)]
        return History(epochs, best_epoch=best, stopped="done", standard_error=0.3)

    short, long = history(4.0, 2.0, 3.0, best=2), history(8.0, 7.0, 6.0, 5.0, best=4)
    merged = merge_histories([short, long], has_own_rows=True)
    assert merged.column("validation") == [6.0, 4.5, 4.0, 3.5]
    assert (merged.best_epoch, merged.best_validation, merged.stopped) == (4, 3.5, "done")
    assert merged.column("seconds") == [0.0, 1.0, 2.0, 3.0]
    assert merged.standard_error == pytest.approx(0.3 / np.sqrt(2))
    assert merge_histories([short, long], has_own_rows=False).standard_error == pytest.approx(0.3)


def test_a_cluster_is_shared_out_equally() -> None:
    assert _share_out({"cpu": 16.0, "gpu": 0.0}, 8) == {"cpu": 2, "gpu": 0.0}
    assert _share_out({"cpu": 4.0, "gpu": 1.0}, 8) == {"cpu": 1, "gpu": 0.125}
    assert _share_out({"cpu": 4.0, "gpu": 8.0}, 2) == {"cpu": 2, "gpu": 1.0}


def test_what_goes_wrong_in_a_job_is_said_and_ends_the_others(ray: HereAndNow) -> None:
    class TaskError(Exception):
        cause = TrainingError("Training diverged: the loss became nan in epoch 1.")

    def fail(_: list[Any]) -> None:
        raise TaskError("a page of traceback")

    ray.get = fail  # type: ignore[method-assign, assignment]
    with pytest.raises(TrainingError, match=r"^Training diverged"):
        fit_members(NAERegressor(n_members=3, **TINY), *make_rows())
    assert len(ray.cancelled) == 3


def test_files_are_for_workers_that_share_rows(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"a": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"on rows in memory; X is a scan of files. Use nae.scale.fit_ray"):
        fit_members(NAERegressor(), nae.scan(tmp_path / "a.parquet"), "y")
