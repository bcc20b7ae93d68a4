"""Several quantiles of one model: no input makes them cross, and each has its share of the training rows below it."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import nae
from nae import NAERegressor
from nae.constraints import Constraints, Score, make_forms
from nae.constraints.interactions import Allowed
from nae.encoding import Cells
from nae.errors import DataError
from nae.network import draw_network
from nae.tables import TableModel
from nae.training import make_loss
from nae.training.assemble import padded_slots
from nae.training.balance import _Rows, _solve_ordered
from nae.training.data import Scored
from nae.training.ordering import in_order, least_apart, moved_apart, ordered_start
from nae.training.workers import ALONE
from tests.configs import network_config
from tests.laws.models import make_model, make_schema, make_table
from tests.laws.test_totals import side_by_side

LEVELS = [0.05, 0.5, 0.95]
SHARES = (slice(0, 100), slice(100, 300))
N_ROWS = 400
FAST: dict[str, Any] = {"n_members": 2, "n_experts": 3, "hidden_dim": 8, "max_epochs": 5, "random_state": 0}
WEIGHT = np.random.default_rng(3).integers(0, 4, N_ROWS).astype(float)
FITS: dict[str, dict[str, Any]] = {
    "by default": {},
    "torch": {"engine": "torch"},
    "an additive model": {"additivity": 1.0},
    "equal experts": {"variant": "nae-e"},
    "a diagonal gate": {"variant": "nae-d"},
    "the paper's network": {"encoder": "mlp", "max_epochs": 2, "n_knots": 32},
    "the dial": {"additivity": 0.9},
    "the dial by itself": {"additivity": "auto"},
    "beside other promises": {"monotonic_cst": {"a": 1}, "max_effect": {"b": 0.3}},
    "five of them": {"quantile": [0.1, 0.2, 0.3, 0.7, 0.9]},
}


def quantiles(**more: Any) -> NAERegressor:
    return NAERegressor("quantile", **{"quantile": LEVELS, **FAST, **more})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    columns = {
        "a": random.normal(size=N_ROWS),
        "b": random.uniform(size=N_ROWS),
        "c": random.choice(["x", "y"], N_ROWS),
    }
    return pd.DataFrame(columns).mask(random.uniform(size=(N_ROWS, 3)) < 0.05)


@pytest.fixture(scope="module")
def y(table) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=N_ROWS)
    return 100 + np.sin(2 * table["a"].fillna(0)).to_numpy() + (0.1 + table["b"].fillna(0)).to_numpy() * noise


@pytest.fixture(scope="module")
def model(table, y) -> TableModel:
    return quantiles().fit(table, y).model_


def every_cell(model: TableModel, random: np.random.Generator, n_rows: int = 20_000) -> Cells:
    """Return rows at slots and between knots, whatever values those stand for: missing and unseen ones, too."""
    slots, fractions = [], []
    for i, feature in enumerate(model.schema.features):
        own = model.schema.slots(i)
        slot = random.integers(own.start, own.stop, n_rows)
        is_between = (slot < own.start + feature.n_values - 1) & (feature.kind == "number")
        slots.append(slot)
        fractions.append(np.where(is_between, random.choice([0.0, 0.3, 0.999], n_rows), 0.0))
    return Cells(np.stack(slots, axis=1), np.stack(fractions, axis=1).astype(model.experts.dtype))


def assert_never_crosses(model: TableModel, random: np.random.Generator) -> None:
    for rows in (make_table(random, model.schema, 2000), every_cell(model, random)):
        assert (np.diff(model.decision_function(rows), axis=1) >= 0).all()


def proven_apart(model: TableModel) -> np.ndarray:
    """Return by how much each output is above the one before it, at least, by looking at every corner."""
    found = []
    for o in range(model.n_outputs - 1):
        least = [
            min(
                float(model.experts[slot, k, o + 1, m]) - float(model.experts[slot, k, o, m])
                for slot, k in product(range(*model.schema.slots(i).indices(10**9)), range(model.n_experts))
            )
            for i in range(model.n_features)
            for m in range(model.n_members)
        ]
        found.append(model.intercept[o + 1] - model.intercept[o] + sum(least) / model.n_members)
    return np.array(found)


@pytest.mark.parametrize("how", FITS)
@pytest.mark.filterwarnings("ignore:additivity")
def test_no_input_makes_quantiles_cross(how, table, y):
    model = quantiles(**FITS[how]).fit(table, y).model_
    assert (proven_apart(model) > 0).all()
    assert_never_crosses(model, np.random.default_rng(5))
    assert model.training.constraints is not None
    assert model.training.constraints["ordered"]
    assert all(one.verdict == "proven" for one in model.certify(**model.training.constraints).certificates)


def test_quantiles_that_cross_somewhere_are_noticed(model):
    near = replace(model, intercept=model.intercept - [0, 0, 1.001 * least_apart(model)[1]])
    assert proven_apart(near)[1] == pytest.approx(0, abs=0.01)
    far = replace(model, intercept=model.intercept - [0, 0, 1.7 * least_apart(model)[1]])
    with pytest.raises(AssertionError):
        assert_never_crosses(far, np.random.default_rng(5))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from([np.float32, np.float64]), st.integers(1, 3))
def test_the_least_room_between_outputs_is_never_undercut(seed, dtype, n_members):
    random = np.random.default_rng(seed)
    gate = ("additive", "low-rank", "deep", "diagonal")[seed % 4]
    model = make_model(random, n_outputs=2, n_members=n_members, gate=gate, scale=10.0, dtype=dtype)
    model = replace(model, experts=in_order(model.experts))
    np.testing.assert_allclose(least_apart(model), proven_apart(model), atol=1e-3 if dtype == np.float32 else 1e-12)
    barely = replace(model, intercept=model.intercept - [0.0, float(least_apart(model)[0])])
    assert_never_crosses(barely, random)


@pytest.mark.parametrize("has_start", [False, True])
def test_every_step_of_training_keeps_the_order(has_start):
    random, schema = np.random.default_rng(8), make_schema(np.random.default_rng(8), 3)
    n_slots = max(feature.n_slots for feature in schema.features)
    config = network_config(n_experts=3, n_active=3, n_members=2, hidden_dim=4)
    forms = make_forms(
        Constraints(monotone={}, curved={}, max_effect={}, allowed=Allowed.everything(3), sorts_outputs=True),
        schema,
        config,
        Score(np.ones(3), is_log=False, n_classes=0),
        n_slots,
    )
    network = draw_network(config, random.normal(size=(3, n_slots, 4)), 3, random=random, forms=forms)
    network = network.with_arrays({k: v + random.normal(size=v.shape) for k, v in network.arrays.items()})
    if has_start:
        network = network.begin_at(ordered_start(random.normal(size=(3 * n_slots + 1, 3, 2)), 3))
    experts, _, intercept = network.to_tables(padded_slots(schema))
    assert (np.diff(experts, axis=2) >= 0).all()
    assert (np.diff(intercept, axis=0) >= 0).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from([0.01, 1.0, 100.0]))
def test_a_start_is_put_in_order_without_a_change_where_it_can_be(seed, size):
    random = np.random.default_rng(seed)
    effects, intercept = size * random.normal(size=(2, 4, 3, 2)), np.sort(random.normal(size=(3, 2)), axis=0)
    start = np.concatenate([effects.reshape(8, 3, 2), intercept[None]])
    found = ordered_start(start, 2)
    assert (np.diff(found, axis=1) >= 0).all()
    rows = np.array(list(product(range(4), range(4, 8))))
    before, after = (one[rows].sum(axis=1) + one[-1] for one in (start, found))
    lacks = np.minimum(np.diff(effects, axis=2).min(axis=1), 0).sum(axis=0) + np.diff(intercept, axis=0)
    for member in range(2):
        is_kept = (lacks[:, member] >= 0).all()
        assert np.allclose(before[..., member], after[..., member], atol=1e-9 * size) == is_kept
    np.testing.assert_allclose(before.mean(axis=1), after.mean(axis=1), atol=1e-9 * size)


@pytest.mark.parametrize("how", ["plain", "weights and offset", "three members"])
def test_each_quantile_has_its_share_of_the_training_rows_below_it(how, table, y):
    is_given = how == "weights and offset"
    weight, base = WEIGHT if is_given else np.ones(N_ROWS), np.linspace(-3, 3, N_ROWS) if is_given else np.zeros(N_ROWS)
    beside = {"sample_weight": weight, "offset": base} if is_given else {}
    model = quantiles(**{"n_members": 3} if how == "three members" else {}).fit(table, y, **beside)
    below = (y[:, None] < model.predict(table, offset=base)) + 0.5 * (y[:, None] == model.predict(table, offset=base))
    np.testing.assert_allclose(weight @ below / weight.sum(), LEVELS, atol=2 * weight.max() / weight.sum())


def least_loss(score: np.ndarray, target: np.ndarray, apart: np.ndarray, levels: tuple[float, ...]) -> float:
    """Return the least loss of all shifts, on a grid, that leave the outputs in order."""
    loss, grid = make_loss("quantile", quantile=levels), np.linspace(-4, 4, 33)
    repeated = np.repeat(target[:, None], len(levels), axis=1)
    kept = (shift for shift in product(grid, repeat=len(levels)) if (np.diff(shift) + apart >= -1e-12).all())
    return min(float(loss.per_row((score + shift)[..., None], repeated).mean()) for shift in kept)


@pytest.mark.parametrize("apart", [[3.0], [0.0], [-1.0], [-6.0], [2.0, -3.0]])
def test_order_wins_over_balance_at_the_least_price(apart):
    random = np.random.default_rng(0)
    levels = (0.2, 0.8) if len(apart) == 1 else (0.2, 0.5, 0.8)
    score, target = 0.3 * random.normal(size=(40, len(levels))), random.normal(size=40)
    loss = make_loss("quantile", quantile=levels)
    repeated = np.repeat(target[:, None], len(levels), axis=1)
    rows = _Rows([Scored(score, repeated, np.ones(40))], loss.excess, None, ALONE)
    shift = _solve_ordered(rows, np.array(apart))
    assert (np.diff(shift) + apart >= -1e-9).all()
    found = float(loss.per_row((score + shift)[..., None], repeated).mean())
    assert found <= least_loss(score, target, np.array(apart), levels) + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16))
def test_intercepts_move_apart_as_little_as_it_takes(seed):
    random = np.random.default_rng(seed)
    model = make_model(random, n_features=1, n_outputs=4, link="identity")
    model = replace(model, experts=0 * model.experts, intercept=random.normal(size=4))
    shift = moved_apart(model).intercept - model.intercept
    assert (np.diff(model.intercept + shift) >= -1e-12).all()
    np.testing.assert_allclose(model.intercept + shift, IsotonicRegression().fit_transform(range(4), model.intercept))


def test_workers_find_the_intercepts_that_one_process_finds():
    random = np.random.default_rng(1)
    apart, loss = np.array([1.0, -2.0]), make_loss("quantile", quantile=LEVELS)
    target = np.repeat(random.normal(size=(300, 1)), 3, axis=1)
    whole = Scored(random.normal(size=(300, 3)), target, random.uniform(0.1, 1, 300))
    parts = [Scored(*(getattr(whole, name)[own] for name in ("score", "target", "weight"))) for own in SHARES]

    def solve(own: Scored, workers: Any) -> np.ndarray:
        return _solve_ordered(_Rows([own], loss.excess, None, workers), apart)

    found = side_by_side([lambda w: solve(parts[0], w), lambda w: solve(parts[1], w)])
    np.testing.assert_allclose(found[0], solve(whole, ALONE), atol=1e-9)
    np.testing.assert_array_equal(found[0], found[1])


def test_outputs_are_named_and_every_quantile_is_measured(table, y, model, tmp_path):
    assert model.outputs == ("q0.05", "q0.5", "q0.95")
    assert model.training.quantile == (0.05, 0.5, 0.95)
    model.save(tmp_path / "m.nae")
    loaded = nae.load(tmp_path / "m.nae")
    assert loaded.training == model.training
    found = nae.quality.measure(loaded, table, y)
    assert [one.name for one in found] == ["pinball loss", "D²", "calibration error"]
    predicted = model.predict(table)
    each = [np.maximum(q * (y - p), (q - 1) * (y - p)).mean() for q, p in zip(LEVELS, predicted.T, strict=True)]
    assert found["pinball loss"].value == pytest.approx(np.mean(each))
    assert found["calibration error"].value < 0.01
    assert found.baseline == "the 5 %, 50 % and 95 % quantiles"
    baseline = np.quantile(y, LEVELS)
    worse = [np.maximum(q * (y - p), (q - 1) * (y - p)).mean() for q, p in zip(LEVELS, baseline, strict=True)]
    assert found["pinball loss"].baseline == pytest.approx(np.mean(worse), rel=1e-3)


def test_the_estimator_scores_loads_and_goes_on(table, y, tmp_path):
    estimator = quantiles(quantile=np.array(LEVELS), warm_start=True).fit(table, y)
    assert estimator.predict(table).shape == (N_ROWS, 3)
    assert 0 < estimator.score(table, y) < 1
    estimator.save(tmp_path / "m.nae")
    loaded = NAERegressor.load(tmp_path / "m.nae")
    np.testing.assert_array_equal(loaded.predict(table), estimator.predict(table))
    again = estimator.fit(table, y)
    assert_never_crosses(again.model_, np.random.default_rng(6))


def test_a_second_target_is_validated_by(table, y):
    model = quantiles().fit(table[:300], y[:300], eval_set=(table[300:], y[300:]))
    assert model.history_.best_validation is not None
    with pytest.raises(DataError, match="eval_set must have the 1 targets of y; got 3"):
        quantiles().fit(table, y, eval_set=(table, np.stack([y] * 3, axis=1)))


def test_a_list_of_one_quantile_is_the_model_of_that_quantile(table, y):
    one, same = (quantiles(quantile=given).fit(table, y) for given in (0.3, [0.3]))
    np.testing.assert_array_equal(one.predict(table), same.predict(table))
    assert one.model_.training.constraints is None
    assert one.model_.training == same.model_.training


@pytest.mark.parametrize("target", ["constant", "mostly zero"])
def test_targets_without_a_spread_are_predicted(target, table):
    y = np.full(N_ROWS, 3.0) if target == "constant" else np.where(np.arange(N_ROWS) % 20 == 0, 5.0, 0.0)
    predicted = quantiles().fit(table, y).predict(table)
    assert (np.diff(predicted, axis=1) >= 0).all()
    assert target != "constant" or (predicted == 3.0).all()


@pytest.mark.parametrize("block_rows", [100, N_ROWS])
def test_files_are_learned_from_as_tables_are(block_rows, table, y, tmp_path):
    pytest.importorskip("datasketches")
    table.assign(y=y, weight=WEIGHT).to_parquet(tmp_path / "rows.parquet")
    scan = nae.scan(tmp_path / "rows.parquet", block_rows=block_rows)
    model = quantiles(batch_size=50).fit(scan, y="y", sample_weight="weight").model_
    assert model.outputs == ("q0.05", "q0.5", "q0.95")
    assert model.training.target == "y"
    assert_never_crosses(model, np.random.default_rng(7))
    below = y[:, None] < model.predict(table)
    np.testing.assert_allclose(WEIGHT @ below / WEIGHT.sum(), LEVELS, atol=3 * WEIGHT.max() / WEIGHT.sum())


REFUSALS: dict[str, tuple[Callable[..., Any], str]] = {
    "several targets": (
        lambda table, y: quantiles().fit(table, np.stack([y, y], axis=1)),
        "y must be one column with several quantiles; got 2. Fit one model per target.",
    ),
    "an offset per quantile": (
        lambda table, y: quantiles().fit(table, y, offset=np.zeros((N_ROWS, 3))),
        r"offset must have one column per output \(1\)",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_could_not_keep_the_order_is_refused(what, table, y):
    act, complaint = REFUSALS[what]
    with pytest.raises(DataError, match=complaint):
        act(table, y)


def test_a_prediction_takes_one_offset_for_all_quantiles(table, model):
    assert (np.diff(model.predict(table, offset=np.arange(N_ROWS)), axis=1) >= 0).all()
    with pytest.raises(DataError, match="offset must have one value per row"):
        model.predict(table, offset=np.zeros((N_ROWS, 3)))
