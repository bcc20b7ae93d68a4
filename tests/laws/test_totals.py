"""Totals: over the rows of a fit, predictions add up to the targets; a loss without totals is as small as can be."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nae
from nae import NAEClassifier, NAERegressor
from nae.encoding.target import robust_scale
from nae.training import make_loss
from nae.training.balance import _Rows, _solve_classes, _solve_outputs
from nae.training.data import Scored
from nae.training.workers import ALONE

N_ROWS = 400
FAST: dict[str, Any] = {"n_members": 2, "n_experts": 2, "hidden_dim": 8, "max_epochs": 3, "random_state": 0}
SMALL = FAST | {"batch_size": 50}  # batches, of which a block of 100 rows has two
WEIGHT = np.random.default_rng(3).integers(0, 4, N_ROWS).astype(float)
OFFSET = np.random.default_rng(4).uniform(-2, 0, N_ROWS)
TOTALS = ["squared", "poisson", "gamma", "tweedie"]
LEAST = ["absolute", "huber", "quantile"]
OPTIONS: dict[str, dict[str, Any]] = {"quantile": {"quantile": 0.8}, "huber": {"huber_delta": 0.5}}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": random.normal(size=N_ROWS), "b": random.uniform(size=N_ROWS), "c": random.choice(["x", "y"], N_ROWS)}
    )


@pytest.fixture(scope="module")
def y(table) -> np.ndarray:
    noise = np.random.default_rng(1).gamma(2.0, size=N_ROWS)
    return np.exp(0.5 * table["a"]).to_numpy() * noise + 0.01


@pytest.fixture(scope="module")
def labels(table) -> np.ndarray:
    noise = np.random.default_rng(2).normal(size=N_ROWS)
    return np.array(["common", "rare", "rarest"])[np.digitize(table["a"] + noise, [1.0, 2.0])]


def assert_total(predicted: np.ndarray, target: np.ndarray, weight: np.ndarray) -> None:
    """Check that weighted predictions add up to the weighted targets, per output."""
    np.testing.assert_allclose(weight @ predicted, weight @ target, rtol=1e-6)


def assert_least(loss: str, score: np.ndarray, target: np.ndarray, weight: np.ndarray, *, spread: float) -> None:
    """Check that no other intercept has a smaller loss."""
    given = make_loss(loss, quantile=0.8, delta=0.5)

    def total(shift: float) -> float:
        scaled = (score + shift)[:, None, None] / spread
        return float(given.per_row(scaled, target[:, None] / spread)[:, 0] @ weight)

    shifts = [sign * 10.0**power * spread for power in range(-5, 1) for sign in (-1, 1)]
    assert total(0.0) <= min(total(shift) for shift in shifts) + 1e-6 * weight.sum()


def test_totals_that_differ_are_noticed(y):
    with pytest.raises(AssertionError):
        assert_total(1.00001 * y, y, WEIGHT)


@pytest.mark.parametrize("loss", LEAST)
def test_a_loss_that_could_be_smaller_is_noticed(loss, y):
    with pytest.raises(AssertionError):
        assert_least(loss, np.full(N_ROWS, y.mean() + y.std()), y, WEIGHT, spread=y.std())


@pytest.mark.parametrize("loss", TOTALS)
@pytest.mark.parametrize("how", ["plain", "weights and offset"])
def test_predictions_add_up_to_the_targets(loss, how, table, y):
    given = {"sample_weight": WEIGHT, "offset": OFFSET} if how != "plain" else {}
    model = NAERegressor(loss, **FAST).fit(table, y, **given)
    assert_total(model.predict(table, offset=given.get("offset")), y, given.get("sample_weight", np.ones(N_ROWS)))
    assert model.model_.training.intercept_shift != (0.0,)


@pytest.mark.parametrize("loss", LEAST)
@pytest.mark.parametrize("how", ["plain", "weights and offset"])
def test_no_other_intercept_has_a_smaller_loss(loss, how, table, y):
    given = {"sample_weight": WEIGHT, "offset": OFFSET} if how != "plain" else {}
    model = NAERegressor(loss, **OPTIONS.get(loss, {}), **FAST).fit(table, y, **given)
    weight, base = given.get("sample_weight", np.ones(N_ROWS)), given.get("offset", np.zeros(N_ROWS))
    spread = robust_scale(y - base, weight)[1]
    assert_least(loss, model.predict(table, offset=base), y, weight, spread=spread)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"rare": 5.0}])
def test_probabilities_add_up_to_the_rows_of_each_class(n_classes, class_weight, table, labels):
    found = np.where((labels == "rarest") & (n_classes == 2), "rare", labels)
    offset = np.random.default_rng(5).normal(size=(N_ROWS, n_classes) if n_classes > 2 else N_ROWS)
    model = NAEClassifier(class_weight=class_weight, **FAST)
    model.fit(table, found, sample_weight=WEIGHT, offset=offset)
    assert_total(model.predict_proba(table, offset=offset), found[:, None] == model.classes_, WEIGHT)


FITS: dict[str, dict[str, Any]] = {
    "few rows": {},
    "folds": {},
    "one member": {"n_members": 1},
    "indices": {"validation": np.arange(100, 200)},
    "the paper's network": {"encoder": "mlp"},
    "additive": {"additivity": 1.0},
    "the dial by itself": {"additivity": "auto"},
}


@pytest.mark.parametrize("how", FITS)
@pytest.mark.filterwarnings("ignore:additivity")
def test_rows_that_were_held_out_count(how, table, y):
    rows = np.arange(100 if how == "few rows" else N_ROWS)
    model = NAERegressor("poisson", **FAST | FITS[how]).fit(table.iloc[rows], y[rows])
    assert_total(model.predict(table.iloc[rows]), y[rows], np.ones(len(rows)))


def test_rows_of_an_evaluation_set_do_not_count(table, y):
    model = NAERegressor("poisson", **FAST).fit(table[100:], y[100:], eval_set=(table[:100], 3 * y[:100]))
    assert_total(model.predict(table[100:]), y[100:], np.ones(N_ROWS - 100))


@pytest.mark.parametrize("offset", [None, 0.123456789])
def test_totals_of_large_amounts_are_as_exact(offset, table, y):
    offset = None if offset is None else np.full(N_ROWS, offset)
    model = NAERegressor("gamma", **FAST).fit(table, 1e9 * y, offset=offset)
    assert_total(model.predict(table, offset=offset), 1e9 * y, np.ones(N_ROWS))


def test_every_output_has_its_own_total(table, y):
    several = np.column_stack([y, 100 - y**2, np.full(N_ROWS, 7.0)])
    assert_total(NAERegressor(**FAST).fit(table, several).predict(table), several, np.ones(N_ROWS))


def test_a_second_fit_has_the_totals_of_its_own_rows(table, y):
    model = NAERegressor("gamma", warm_start=True, **FAST).fit(table, y)
    model.fit(table, 2 * y)
    assert_total(model.predict(table), 2 * y, np.ones(N_ROWS))


@pytest.mark.parametrize(
    "size", [(1, 100), (1, N_ROWS), (2, 100), (2, N_ROWS)], ids=lambda size: "x".join(map(str, size))
)
@pytest.mark.parametrize("loss", ["tweedie", "absolute"])
def test_files_have_the_totals_of_their_rows(size, loss, table, y, tmp_path):
    pytest.importorskip("datasketches")
    table.assign(y=y, weight=WEIGHT, offset=OFFSET).to_parquet(tmp_path / "rows.parquet")
    n_members, block_rows = size
    model = NAERegressor(loss, **SMALL | {"n_members": n_members})
    scan = nae.scan(tmp_path / "rows.parquet", block_rows=block_rows)
    predicted = model.fit(scan, y="y", sample_weight="weight", offset="offset").predict(table, offset=OFFSET)
    if loss == "tweedie":
        assert_total(predicted, y, WEIGHT)
    else:
        assert_least(loss, predicted, y, WEIGHT, spread=float(y.std()))


def test_rows_that_a_scan_did_not_keep_do_not_count(table, y, tmp_path, monkeypatch):
    pytest.importorskip("datasketches")
    monkeypatch.setattr("nae.estimators.streaming.VALIDATION_ROWS", 10)  # of the 50 that one member holds out
    table.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    model = NAERegressor("poisson", **SMALL | {"n_members": 1})
    model.fit(nae.scan(tmp_path / "rows.parquet", block_rows=100), y="y")
    assert model.model_.training.n_validation_rows < 50
    ratio = model.predict(table).sum() / y.sum()
    assert 1e-5 < abs(ratio - 1) < 0.1  # the 350 others are most of the rows


@pytest.mark.parametrize("block_rows", [100, N_ROWS])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_in_files_have_the_totals_of_their_rows(block_rows, n_classes, table, labels, tmp_path):
    pytest.importorskip("datasketches")
    found = np.where((labels == "rarest") & (n_classes == 2), "rare", labels)
    table.assign(y=found).to_parquet(tmp_path / "rows.parquet")
    model = NAEClassifier(class_weight="balanced", **SMALL)
    model.fit(nae.scan(tmp_path / "rows.parquet", block_rows=block_rows), y="y")
    assert_total(model.predict_proba(table), found[:, None] == model.classes_, np.ones(N_ROWS))


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_a_total_of_zero_is_left_alone(loss, table):
    model = NAERegressor(loss, **FAST).fit(table, np.zeros(N_ROWS), offset=OFFSET)
    assert np.isfinite(model.intercept_)
    assert model.predict(table, offset=OFFSET).max() < 1e-3


def test_a_single_row_and_classes_that_are_told_apart_perfectly_are_balanced(table):
    assert NAERegressor("gamma", **FAST).fit(table[:1], [3.0]).predict(table[:1]) == pytest.approx(3.0)
    is_right = (table["a"] > 1).to_numpy()
    model = NAEClassifier(**FAST | {"max_epochs": 60, "learning_rate": 0.05}).fit(table[["a"]], is_right)
    assert_total(model.predict_proba(table[["a"]])[:, 1], is_right, np.ones(N_ROWS))
    assert model.score(table[["a"]], is_right) > 0.99


def scored(loss: str, random: np.random.Generator, scale: float) -> Scored:
    n_classes = 4
    score = scale * random.normal(size=(200, n_classes if loss == "cross-entropy" else 2))
    targets = {
        "cross-entropy": random.permutation(np.arange(200) % n_classes),
        "logistic": random.integers(0, 2, score.shape).astype(float),
        "poisson": np.exp(score[::-1]),
        "gamma": np.exp(score[::-1]),
    }
    return Scored(score, targets.get(loss, score[::-1] + 1.0), random.uniform(0.1, 1, 200))


def solve(loss: str, parts: list[Scored], start: float = 0.0, **more: Any) -> np.ndarray:
    rows = _Rows(parts, make_loss(loss).excess, None, more.get("workers", ALONE))
    begin = np.full(parts[0].score.shape[1], start)
    if loss == "cross-entropy":
        found = _solve_classes(rows, begin)
        return found - found.mean()
    return _solve_outputs(rows, begin, is_relative=not make_loss(loss).is_scaled)


SOLVED = ["squared", "absolute", "huber", "quantile", "poisson", "gamma", "logistic", "cross-entropy"]


@pytest.mark.parametrize("loss", SOLVED)
@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("start", [0.0, -40.0, 40.0])
def test_the_intercept_is_found_from_anywhere(loss, scale, start):
    part = scored(loss, np.random.default_rng(6), scale)
    found = solve(loss, [part], start)
    excess, _ = make_loss(loss).excess(part.score + found, part.target)
    size = part.weight.sum() if make_loss(loss).is_scaled else part.weight @ np.abs(part.target)
    largest = part.weight.max() if loss in ("absolute", "quantile") else 0.0  # a jump is met as closely as one row
    assert (np.abs(part.weight @ excess) <= 1e-8 * size + largest).all()


@pytest.mark.parametrize("loss", SOLVED)
def test_parts_and_workers_find_what_one_process_finds(loss):
    random = np.random.default_rng(7)
    parts = [scored(loss, random, 1.0) for _ in range(3)]
    whole = Scored(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("score", "target", "weight")))
    alone = solve(loss, [whole])
    np.testing.assert_allclose(solve(loss, parts), alone, atol=1e-9)
    found = side_by_side([lambda w: solve(loss, parts[:1], workers=w), lambda w: solve(loss, parts[1:], workers=w)])
    np.testing.assert_allclose(found[0], alone, atol=1e-9)
    np.testing.assert_array_equal(found[0], found[1])


class Beside:
    """One of two workers that are threads: each waits for the other's numbers."""

    count = 2

    def __init__(self, rank: int, told: dict[int, np.ndarray], barrier: threading.Barrier) -> None:
        self.rank, self.told, self.barrier = rank, told, barrier

    def total(self, values: np.ndarray) -> np.ndarray:
        self.told[self.rank] = values
        self.barrier.wait(timeout=20)
        found = self.told[0] + self.told[1]
        self.barrier.wait(timeout=20)
        return found


def side_by_side(work: list[Callable[[Any], np.ndarray]]) -> list[np.ndarray]:
    found: dict[int, np.ndarray] = {}
    told: dict[int, np.ndarray] = {}
    barrier = threading.Barrier(2)

    def run(rank: int) -> None:
        found[rank] = work[rank](Beside(rank, told, barrier))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(timeout=30)
    return [found[0], found[1]]
