"""A fit keeps its promises: the finished tables prove them, for every gate, kind of target and engine."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import nae
from nae.errors import ConfigError
from nae.native import is_here

RANDOM = np.random.default_rng(0)
N = 240
X = RANDOM.uniform(size=(N, 4))
X[::9, 2] = np.nan
NOISE = RANDOM.normal(size=N)
# What is promised below is not what is true: without constraints, each of the promises is refuted.
Y = 4 * (X[:, 0] - 0.5) ** 2 + X[:, 0] * X[:, 1] - X[:, 3] + np.where(X[:, 1] > 0.5, 2, 0) * X[:, 3] + 0.1 * NOISE
SMALL: Mapping[str, Any] = {"random_state": 0, "n_members": 2, "max_epochs": 12, "hidden_dim": 8, "n_experts": 4}
PROMISES: Mapping[str, Any] = {
    "monotonic_cst": {"x0": 1, "x1": -1},
    "max_effect": {"x3": 0.3},
    "interaction_cst": {"x2": {"changes": [], "changed_by": []}},
}
STATEMENTS: Mapping[str, Any] = {
    "monotone": {"x0": "+", "x1": "-"},
    "max_effect": {"x3": 0.3},
    "isolated": ["x2"],
    "unchanged": ["x2"],
}


def fit(target: np.ndarray = Y, **given: Any) -> nae.NAERegressor:
    return nae.NAERegressor(**{**SMALL, **given}).fit(X, target)


@pytest.fixture(scope="module")
def free() -> nae.NAERegressor:
    return fit(max_epochs=60)


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_free_fit_proves_nothing_of_it(free: nae.NAERegressor, kind: str) -> None:
    assert not free.certify(**{kind: STATEMENTS[kind]}).all_proven


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep", "diagonal"])
@pytest.mark.parametrize("engine", ["native", "torch"])
def test_every_gate_and_engine_keeps_all_promises(gate: str, engine: str) -> None:
    if engine == "native" and not is_here():
        pytest.skip("the native core is not built")
    variant = {"variant": "nae-d"} if gate == "diagonal" else {"gate": gate}
    model = fit(engine=engine, **variant, **PROMISES)
    assert model.certify(**STATEMENTS).all_proven
    assert model.model_.training.constraints == {
        "monotone": {"x0": "+", "x1": "-"},
        "max_effect": {"x3": 0.3},
        "isolated": ["x2"],
        "unchanged": ["x2"],
    }


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep"])
def test_monotone_features_interact(gate: str) -> None:
    product = 4 * X[:, 0] * X[:, 1] + 0.1 * NOISE
    model = fit(product, gate=gate, max_epochs=40, monotonic_cst={"x0": 1, "x1": 1})
    assert model.certify(monotone={"x0": "+", "x1": "+"}).all_proven
    assert {one.verdict for one in model.certify(isolated=["x0", "x1"]).certificates} == {"refuted"}


@pytest.mark.parametrize(
    "given",
    [
        {"variant": "nae-e"},
        {"additivity": 1.0},
        {"n_experts": 1},
        {"additivity": 0.9},
        {"n_active": 2},
        {"loss": "poisson"},
        {"loss": "absolute"},
        {"n_members": 1, "validation_size": 0.2},
        {"quantile": [0.1, 0.5, 0.9], "loss": "quantile"},
    ],
    ids=str,
)
def test_other_settings_keep_all_promises(given: dict[str, Any]) -> None:
    model = fit(np.exp(Y - 2) if given.get("loss") == "poisson" else Y, **given, **PROMISES)
    assert model.certify(**STATEMENTS).all_proven


def test_several_targets_keep_all_promises() -> None:
    model = fit(np.stack([Y, 10 * Y**2], axis=1), **PROMISES)
    assert model.certify(**STATEMENTS).all_proven


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_a_promise_is_about_the_class_that_the_model_speaks_for(positive: str) -> None:
    labels = np.where(np.median(Y) < Y, "yes", "no")
    model = nae.NAEClassifier(positive_class=positive, **SMALL, **PROMISES).fit(X, labels)
    assert model.certify(**STATEMENTS).all_proven
    assert model.model_.training.constraints["monotone"] == {"x0": "+", "x1": "-"}
    other = model.model_.for_class("no" if positive == "yes" else "yes")
    assert other.training.constraints is not None
    assert other.training.constraints["monotone"] == {"x0": "-", "x1": "+"}


def test_log_odds_of_three_classes_stay_under_the_cap() -> None:
    labels = np.digitize(Y, np.quantile(Y, [0.3, 0.6])).astype(str)
    model = nae.NAEClassifier(**SMALL, max_effect={"x0": 0.2}).fit(X, labels)
    assert all(model.certify(max_effect={"x0": 0.2}, output=label).all_proven for label in "012")
    with pytest.raises(ConfigError, match="y has 3 classes"):
        nae.NAEClassifier(**SMALL, monotonic_cst={"x0": 1}).fit(X, labels)


@pytest.mark.parametrize("bend", ["convex", "concave"])
@pytest.mark.parametrize("way", [None, 1, -1])
def test_a_curve_bends_one_way(bend: str, way: int | None) -> None:
    cst = None if way is None else {"x0": way}
    model = fit(monotonic_cst=cst, **{bend: ["x0"]}).model_
    feature, slots = model.schema.features[0], model.schema.slots(0)
    knots = feature.knots
    experts = model.experts[slots][: len(knots)].astype(np.float64)
    slopes = np.diff(experts, axis=0) / np.diff(knots).reshape(-1, 1, 1, 1)
    turns = np.diff(slopes, axis=0) * (1 if bend == "convex" else -1)
    assert turns.min() > -1e-3 * np.abs(slopes).max()  # rounding, divided by the distance of two knots
    assert not way or (way * np.diff(experts, axis=0)).min() > -1e-6
    assert model.certify(isolated=["x0"]).all_proven
    assert model.verify().all_proven
    assert model.training.constraints["curved"] == {"x0": bend}


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_true_bend_over_a_skewed_feature_costs_nothing(loss: str) -> None:
    """Most rows of such a feature lie in a small part of its range, where its curve is steep."""
    random = np.random.default_rng(1)
    table = np.stack([random.lognormal(0, 2, 700), random.normal(size=700)], axis=1)
    truth = 0.5 * np.log(table[:, 0]) + 0.3 * table[:, 1]
    target = random.poisson(np.exp(truth)) if loss == "poisson" else truth + 0.3 * random.normal(size=700)
    rows, others = slice(0, 500), slice(500, None)
    settings = {**SMALL, "max_epochs": 60, "loss": loss}
    plain = nae.NAERegressor(**settings).fit(table[rows], target[rows])
    bent = nae.NAERegressor(**settings, concave=["x0"]).fit(table[rows], target[rows])
    missed = [
        np.sqrt(np.mean((one.decision_function(table[others]) - truth[others]) ** 2))
        for one in (plain.model_, bent.model_)
    ]
    assert missed[1] < 1.2 * missed[0]
    assert bent.certify().all_proven


@pytest.mark.parametrize("gate", ["additive", "low-rank"])
def test_rounding_to_single_precision_breaks_no_direction(gate: str) -> None:
    found = fit(gate=gate, monotonic_cst={"x0": 1, "x1": -1, "x3": 1}).certify()
    assert [one.bound for one in found.certificates] == [0, 0, 0]


def test_groups_do_not_interact() -> None:
    model = fit(interaction_cst=[["x0", "x1"], ["x1", "x3"]], n_members=4).model_
    a, b = (RANDOM.uniform(size=(50, 4)) for _ in range(2))
    # A second difference over x0 and x3 is zero for every x1, although both change the effect of x1.
    corners = []
    for first in (a, b):
        for second in (a, b):
            rows = a.copy()
            rows[:, 0], rows[:, 3] = first[:, 0], second[:, 3]
            corners.append(model.decision_function(model.schema.locate(nae.encoding.Columns(tuple(rows.T)))))
    apart = corners[0] - corners[1] - corners[2] + corners[3]
    assert np.abs(apart).max() < 1e-5 * np.ptp(corners)
    pair = model.explain_global()
    assert pair is not None


def test_a_gate_with_a_matrix_cannot_hold_groups() -> None:
    with pytest.raises(ConfigError, match="Pass gate='additive'"):
        fit(gate="low-rank", interaction_cst=[["x0", "x1"]])


def test_the_papers_network_makes_no_promises() -> None:
    with pytest.raises(ConfigError, match="encoder='piecewise'"):
        fit(encoder="mlp", monotonic_cst={"x0": 1})


def test_a_bend_and_several_quantiles_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="one quantile"):
        fit(loss="quantile", quantile=[0.1, 0.9], convex=["x0"])


def test_a_warm_start_keeps_all_promises() -> None:
    model = nae.NAERegressor(warm_start=True, **SMALL, **PROMISES).fit(X, Y)
    assert model.fit(X, Y + 1).certify(**STATEMENTS).all_proven


def test_promises_survive_a_file(tmp_path: Any) -> None:
    model = fit(**PROMISES)
    model.save(tmp_path / "m.nae")
    again = nae.NAERegressor.load(tmp_path / "m.nae")
    assert again.get_params() == model.get_params()
    assert again.model_.training.constraints == model.model_.training.constraints
