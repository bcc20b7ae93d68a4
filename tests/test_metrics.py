"""Metrics of models whose answers are known."""

import inspect

import numpy as np
import pandas as pd
import pytest

from nae import NAERegressor, metrics
from nae.encoding import Category, Number, Schema
from nae.errors import DataError
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel
from tests.laws.models import make_model, make_table

ADDITIVITIES = (metrics.additivity, metrics.additivity_weighted)
ALL = (*ADDITIVITIES, metrics.interaction_share, metrics.cancellation, metrics.tightness)


def curves(*slopes: float) -> TableModel:
    """Return a model of one expert per feature: a straight line of the given slope on [-1, 1]."""
    features = tuple(Number(f"x{i}", np.array([-1.0, 1.0])) for i in range(len(slopes)))
    experts = np.concatenate([np.array([-slope, slope, 0.0, 0.0]) for slope in slopes])[:, None, None, None]
    gate = GateTables("diagonal", np.zeros((len(experts), 1, 1)), np.zeros((len(slopes), 1)))
    return TableModel(Schema(features), experts, gate, SoftmaxRouting(1), np.zeros(1), LINKS["identity"])


def product(*, strength: float = 30.0, main: float = 0.0) -> TableModel:
    """Return a model whose first feature adds its value when the second is 'up' and takes it away when 'down'."""
    schema = Schema((Number("value", np.array([-1.0, 1.0])), Category("sign", ("up", "down"))))
    experts = np.zeros((schema.n_slots, 2, 1, 1))
    experts[0, :, 0, 0], experts[1, :, 0, 0] = [-1 - main, 1 - main], [1 + main, -1 + main]
    terms = np.zeros((schema.n_slots, 4, 1))
    terms[4, 0], terms[5, 2] = strength, strength  # 'up' calls the first expert of 'value', 'down' the second
    gate = GateTables("additive", terms, np.zeros((4, 1)))
    return TableModel(schema, experts, gate, SoftmaxRouting(2), np.zeros(1), LINKS["identity"])


@pytest.fixture
def rows() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({"value": random.uniform(-1, 1, 4000), "sign": random.choice(["up", "down"], 4000)})


def test_a_generalized_additive_model_is_additive_and_tight():
    model = curves(1.0, -2.0, 0.5)
    X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    assert float(metrics.additivity(model, X)) == pytest.approx(1, abs=1e-9)
    assert float(metrics.additivity_weighted(model, X)) == pytest.approx(1, abs=1e-9)
    assert float(metrics.interaction_share(model, X)) == pytest.approx(0, abs=1e-9)
    assert float(metrics.tightness(model, X)) == pytest.approx(1, abs=1e-6)


def test_a_product_is_all_interaction(rows):
    model = product()
    additivity = metrics.additivity(model, rows)
    assert additivity.per_feature["value"] < 0.02
    assert additivity.per_feature["sign"] == pytest.approx(1)  # it contributes nothing itself
    assert additivity.overall == pytest.approx(np.mean(list(additivity.per_feature.values())))
    assert float(metrics.interaction_share(model, rows)) > 0.98


def test_a_product_and_a_main_effect_share_the_variance(rows):
    model = product(main=1.0)  # x + x * sign: half of the variance is context
    assert metrics.additivity(model, rows).per_feature["value"] == pytest.approx(0.5, abs=0.05)
    assert metrics.interaction_share(model, rows).overall == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("n_rows", [40, 150, 400])
def test_few_rows_per_bin_do_not_pass_chance_off_as_effect(rows, n_rows):
    found = [
        metrics.additivity(product(), rows.iloc[start : start + n_rows]).per_feature["value"]
        for start in range(0, 10 * n_rows, n_rows)
    ]
    assert np.mean(found) < 0.1  # bins of single rows alone would explain everything


def test_a_feature_that_hardly_matters_hardly_counts(rows):
    small = product()
    schema = Schema((Number("line", np.array([-1.0, 1.0])), *small.schema.features))
    line = np.array([-1.0, 1.0, 0.0, 0.0])[:, None, None, None].repeat(2, axis=1)
    terms = np.zeros((schema.n_slots, 6, 1))
    terms[4:, [1, 2, 4, 5]] = small.gate.terms
    gate = GateTables("additive", terms, np.zeros((6, 1)))
    experts = np.concatenate([line, 0.05 * small.experts])
    model = TableModel(schema, experts, gate, SoftmaxRouting(2), np.zeros(1), LINKS["identity"])
    table = rows.assign(line=rows["value"].to_numpy()[::-1])
    plain, weighted = metrics.additivity(model, table), metrics.additivity_weighted(model, table)
    assert weighted.per_feature == plain.per_feature
    assert plain.per_feature["line"] == pytest.approx(1)
    assert plain.overall < 0.68  # a third of the features is all context
    assert weighted.overall == pytest.approx(1 - 0.05**2 / (1 + 0.05**2), abs=2e-4)  # but of a 400th of the variance


def test_effects_that_cancel_are_shown():
    X = np.random.default_rng(1).uniform(-1, 1, 2000)
    alike = np.stack([X, X], axis=1)
    assert float(metrics.cancellation(curves(1.0, -0.9), alike)) == pytest.approx((1 + 0.81) / 0.01, rel=0.01)
    apart = np.random.default_rng(2).uniform(-1, 1, (50_000, 2))
    assert float(metrics.cancellation(curves(1.0, -0.9), apart)) == pytest.approx(1, abs=0.03)


def test_cancellation_is_the_sum_of_its_features():
    found = metrics.cancellation(curves(1.0, 2.0), np.random.default_rng(3).uniform(-1, 1, (100, 2)))
    assert found.overall == pytest.approx(sum(found.per_feature.values()))


def test_tightness_is_the_share_of_the_bounds_that_is_used(rows):
    whole, half = product(), product(strength=np.log(3))  # weights 3/4 and 1/4: contributions of half the range
    at_one = rows.assign(value=1.0)
    assert metrics.tightness(whole, at_one).per_feature["value"] == pytest.approx(1, abs=1e-6)
    assert metrics.tightness(half, at_one).per_feature["value"] == pytest.approx(0.5, abs=1e-6)


def test_missing_values_are_a_bin_of_their_own():
    model = curves(1.0, 1.0)
    model.experts[2] = 5.0  # what missing contributes
    X = np.random.default_rng(4).uniform(-1, 1, (300, 2))
    X[::3, 0] = np.nan
    assert float(metrics.additivity(model, X)) == pytest.approx(1, abs=1e-9)
    assert float(metrics.tightness(model, X)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("gate", ["additive", "deep", "diagonal"])
def test_metrics_are_finite_for_any_model_and_rows(metric, n_outputs, gate):
    random = np.random.default_rng(5)
    model = make_model(random, n_outputs=n_outputs, n_members=2, gate=gate)
    for n_rows in (1, 2, 300):
        found = metric(model, make_table(random, model.schema, n_rows))
        assert set(found.per_feature) == set(model.feature_names)
        assert np.isfinite([found.overall, *found.per_feature.values()]).all()
        if metric in (*ADDITIVITIES, metrics.tightness):
            assert all(0 <= value <= 1 for value in found.per_feature.values())


@pytest.mark.parametrize("metric", ALL)
def test_estimators_and_their_tables_have_the_same_metrics(metric):
    random = np.random.default_rng(6)
    X = pd.DataFrame(random.normal(size=(80, 2)), columns=["a", "b"])
    y = X["a"] * X["b"]
    model = NAERegressor(n_members=1, max_epochs=20, n_experts=3, hidden_dim=8, random_state=0).fit(X, y)
    assert metric(model, X) == metric(model.model_, X)


@pytest.mark.parametrize("metric", ALL)
def test_a_row_of_weight_zero_is_absent(metric, rows):
    model, few = product(main=0.3), rows.iloc[:200]
    weight = np.random.default_rng(7).integers(0, 2, 200)
    found = metric(model, few, sample_weight=weight)
    expected = metric(model, few[weight > 0])
    assert found.overall == pytest.approx(expected.overall, rel=1e-12)
    assert found.overall != metric(model, few).overall


@pytest.mark.parametrize("metric", ALL)
def test_only_the_ratio_of_weights_matters(metric, rows):
    weight = np.random.default_rng(8).uniform(0.5, 2, len(rows))
    one, other = (metric(product(main=0.3), rows, sample_weight=weight * scale) for scale in (1, 1000))
    assert one.overall == pytest.approx(other.overall)


def test_a_summary_has_all_five(rows):
    model = product(main=0.5)
    summary = metrics.additivity_summary(model, rows)
    assert summary == {metric.__name__: float(metric(model, rows)) for metric in ALL}


def test_a_metric_reads_like_a_number(rows):
    found = metrics.additivity(product(), rows)
    assert float(found) == found.overall
    assert f"{found:.1f}" == f"{found.overall:.1f}"
    assert str(found) == f"additivity {found.overall:.3f}"


@pytest.mark.parametrize("metric", ALL)
def test_metrics_without_rows_are_an_error(metric):
    with pytest.raises(DataError, match="A metric needs at least one row; the table has none"):
        metric(curves(1.0), np.empty((0, 1)))


def test_weights_that_do_not_fit_are_an_error():
    X = np.zeros((3, 1))
    with pytest.raises(DataError, match=r"sample_weight must have one value per row \(3\); got shape \(2,\)"):
        metrics.additivity(curves(1.0), X, sample_weight=[1, 2])
    for weight in ([1, 2, -1], [1, 2, np.nan]):
        with pytest.raises(DataError, match="sample_weight must be finite and not negative; row 2"):
            metrics.additivity(curves(1.0), X, sample_weight=weight)


def test_every_public_function_takes_models_and_rows():
    functions = [value for name in metrics.__all__ if inspect.isfunction(value := getattr(metrics, name))]
    assert functions
    for function in functions:
        assert list(inspect.signature(function).parameters)[:2] in (["model", "X"], ["models", "X"])
