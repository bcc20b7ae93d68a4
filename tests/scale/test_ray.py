"""One model from several workers, on a Ray of this machine."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from nae import NAERegressor, TableModel, load
from nae.scale import connect, fit_members, fit_ray, tune_ray
from nae.tuning import Range, SearchSpace, tune
from tests.scale.steps import take_steps, take_steps_together

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]
PARAMS: dict[str, Any] = {"n_members": 2, "max_epochs": 8, "batch_size": 256, "random_state": 0}
OBJECTIVES: dict[str, dict[str, object]] = {
    "dial": {"additivity": 0.9, "output_penalty": 0.01, "variation_penalty": 0.1},
    "context": {"context_penalty": 0.5, "output_penalty": 0.1, "variation_penalty": 0.1},
}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "300")
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")  # the controller takes one report at a time
    os.environ.setdefault("RAY_DATA_PARQUET_FOOTER_NUM_ACTORS", "1")  # else 32 processes look at four files
    with connect(n_cpus=4) as module:  # two train, two read
        yield module


def make_table(n_rows: int = 3000) -> pa.Table:
    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, 3))
    y = X[:, 0] * np.sign(X[:, 1]) + 0.1 * random.standard_normal(n_rows)
    level = np.array(["low", "high"])[(X[:, 2] > 0).astype(int)]
    return pa.table({"a": X[:, 0], "b": X[:, 1], "level": level, "y": y})


def with_offset(table: pa.Table) -> pa.Table:
    """Return the table with a known part that is added to its target, and rows that weigh nothing and are wrong."""
    known = 5.0 * np.arange(table.num_rows) / table.num_rows
    weight = np.ones(table.num_rows)
    weight[::10] = 0.0
    y = np.array(table["y"]) + known + 100.0 * (weight == 0)
    return (
        table.set_column(3, "y", pa.array(y))
        .append_column("known", pa.array(known))
        .append_column("weight", pa.array(weight))
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_two_workers_take_the_steps_of_one(ray: Any, name: str) -> None:
    config = OBJECTIVES[name]
    work = ray.remote(num_cpus=1)(take_steps_together)
    for n_steps, tolerance in ((1, 1e-6), (20, 1e-3)):
        port = free_port()
        found = ray.get([work.remote(rank, port, n_steps, config) for rank in range(2)])
        expected = take_steps(n_steps, **config)
        for key, array in expected.items():
            np.testing.assert_allclose(found[0][key], array, rtol=0, atol=tolerance, err_msg=f"{n_steps}: {key}")
            np.testing.assert_array_equal(found[0][key], found[1][key])  # and they stay the same network
        assert np.abs(expected["intercept"]).max() > 1e-5  # something moved


class Killer:
    """A callback that ends the second worker once, in the middle of the training, as a lost machine would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *, epoch: int, **_: Any) -> None:
        from ray.train import get_context

        rank = get_context().get_world_rank()
        with (self.folder / f"epochs-{rank}.txt").open("a") as file:
            file.write(f"{epoch}\n")
        if rank == 1 and epoch == 4 and not (self.folder / "killed").exists():
            (self.folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)


def rmse(model: TableModel, table: pa.Table) -> float:
    error = model.predict(table.drop_columns(["y"])) - np.array(table["y"])
    return float(np.sqrt(np.mean(error**2)))


@pytest.mark.usefixtures("ray")
def test_a_fit_survives_a_lost_worker_and_scores_like_one_process(tmp_path: Path) -> None:
    table = make_table()
    (tmp_path / "data").mkdir()
    for part in range(4):
        pa.parquet.write_table(with_offset(table).slice(750 * part, 750), tmp_path / "data" / f"{part}.parquet")
    model = fit_ray(
        tmp_path / "data",
        "y",
        {**PARAMS, "callbacks": [Killer(tmp_path)]},
        2,
        sample_weight="weight",
        offset="known",
        storage_path=f"fsspec+local://{tmp_path}/runs",
        max_failures=2,
    )
    assert (tmp_path / "killed").exists()
    epochs = [int(line) for line in (tmp_path / "epochs-0.txt").read_text().split()]
    assert epochs.count(1) == 1  # the second try did not begin at the beginning
    assert epochs[-1] == 8
    kept = table.take(np.flatnonzero(np.arange(3000) % 10))
    alone = NAERegressor(**PARAMS).fit(kept.drop_columns(["y"]), np.array(kept["y"])).model_
    assert model.feature_names == alone.feature_names
    np.testing.assert_array_equal(model.schema.knots, alone.schema.knots)  # few rows: the sketches are exact
    assert model.training.n_rows == 2700
    assert rmse(model, table) == pytest.approx(rmse(alone, table), rel=0.15)
    assert model.predict(kept.drop_columns(["y"])).mean() == pytest.approx(
        np.mean(kept["y"]), abs=1e-6
    )  # of all workers


class KillOnce:
    """A callback that ends its process once, as a lost machine would."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, *, epoch: int, **_: Any) -> None:
        if epoch == 2 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("ray")
def test_members_trained_by_two_jobs_survive_a_lost_one_and_score_like_a_batched_fit(tmp_path: Path) -> None:
    table = make_table()
    X, y = table.drop_columns(["y"]), np.array(table["y"])
    estimator = NAERegressor(**{**PARAMS, "callbacks": [KillOnce(tmp_path / "killed")]})
    model = fit_members(estimator, X, y, resources={"cpu": 2}).model_
    assert (tmp_path / "killed").exists()
    together = NAERegressor(**PARAMS).fit(X, y).model_
    np.testing.assert_array_equal(model.schema.knots, together.schema.knots)
    assert model.experts.shape == together.experts.shape
    assert rmse(model, table) == pytest.approx(rmse(together, table), rel=0.3)  # each job draws weights of its own
    assert model.training.validation_loss == pytest.approx(together.training.validation_loss, rel=0.3)
    model.save(tmp_path / "m.nae")
    found = load(tmp_path / "m.nae").explain_global()
    assert {shape.name for shape in found.ranked()[:2]} == {"a", "b"}
    assert found.additivity == pytest.approx(together.explain_global().additivity, abs=0.2)


@pytest.mark.usefixtures("ray")
def test_a_search_on_the_cluster_and_one_on_this_machine_share_a_study(tmp_path: Path) -> None:
    table = make_table(300)
    X, y = table.drop_columns(["y"]), np.array(table["y"])
    space = SearchSpace((Range("learning_rate", 1e-3, 2e-2, default=5e-3),))
    given: dict[str, Any] = {"folder": tmp_path, "space": space, "n_seeds": 2}
    estimator, seen = NAERegressor(n_members=1, n_experts=2, n_knots=8, max_epochs=2), []
    first = tune_ray(estimator, X, y, n_trials=1, on_trial=seen.append, **given)
    assert first.trials == tuple(seen)
    assert first.best.params == {"learning_rate": 5e-3}
    assert first.best.standard_error > 0
    alone = tune(estimator, X, y, n_trials=1, **{**given, "folder": tmp_path / "alone"}).best
    for name in ("loss", "deviation", "additivity"):  # every seed was a job, and together they are the same trial
        assert getattr(first.best, name) == pytest.approx(getattr(alone, name), rel=1e-4), name
    second = tune(estimator, X, y, n_trials=2, **given)
    assert second.trials[:1] == first.trials
    assert len(second.trials) == 2
