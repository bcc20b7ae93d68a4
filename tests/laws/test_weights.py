"""Weights: 2 is the row twice, 0 is the row absent. Exactly with full batches; in objective and gradient always."""

import numpy as np
import pandas as pd
import pytest
import torch

from nae import NAEClassifier, NAERegressor
from nae.encoding import Cells, Columns, build_schema, infer_kinds
from nae.engines.torch import TorchEngine
from nae.engines.torch.rows import TensorRows
from nae.network import draw_network, piecewise_inputs
from nae.training import Job, TrainingConfig, TrainingRows, make_loss
from nae.training.assemble import padded_slots
from tests.configs import network_config, training_config

N_ROWS = 40
FAST = {"n_members": 1, "max_epochs": 40, "hidden_dim": 8, "n_experts": 3, "random_state": 0}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": random.normal(size=N_ROWS),
            "gaps": np.where(random.uniform(size=N_ROWS) < 0.3, np.nan, random.integers(0, 9, N_ROWS)),
            "level": pd.Categorical(random.choice(["a", "b", "c", None], N_ROWS)),
        }
    )


@pytest.fixture(scope="module")
def weight() -> np.ndarray:
    weight = np.random.default_rng(1).integers(0, 4, N_ROWS).astype(float)
    assert set(weight) == {0, 1, 2, 3}
    return weight


def repeated(weight: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(N_ROWS), weight.astype(int))


def assert_same_scores(weighted, plain, table: pd.DataFrame) -> None:
    found, expected = (model.model_.decision_function(table) for model in (weighted, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert expected.std() > 0.05


LOSSES = ["squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie"]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weighted_regression_equals_one_on_repeated_rows(table, weight, loss):
    y = np.exp(np.random.default_rng(2).normal(size=N_ROWS)) + table["gaps"].fillna(3).to_numpy()
    offset = np.random.default_rng(3).uniform(-0.5, 0.5, N_ROWS)
    rows = repeated(weight)
    weighted = NAERegressor(loss, **FAST).fit(table, y, sample_weight=weight, offset=offset)
    plain = NAERegressor(loss, **FAST).fit(table.iloc[rows], y[rows], offset=offset[rows])
    assert_same_scores(weighted, plain, table)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"class 0": 3.0}])
def test_a_weighted_classification_equals_one_on_repeated_rows(table, weight, n_classes, class_weight):
    codes = np.random.default_rng(4).integers(n_classes, size=N_ROWS)
    y = np.array([f"class {code}" for code in codes])
    rows = repeated(weight)
    weighted = NAEClassifier(class_weight=class_weight, **FAST).fit(table, y, sample_weight=weight)
    plain = NAEClassifier(class_weight=class_weight, **FAST).fit(table.iloc[rows], y[rows])
    assert_same_scores(weighted, plain, table)


def test_statistics_of_a_weighted_model_equal_those_of_repeated_rows(table, weight):
    y = np.random.default_rng(5).normal(size=N_ROWS)
    rows = repeated(weight)
    weighted = NAERegressor(**FAST).fit(table, y, sample_weight=weight).model_.statistics
    plain = NAERegressor(**FAST).fit(table.iloc[rows], y[rows]).model_.statistics
    for name in ("weight", "mean", "variance", "gate_mean"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(plain, name), rtol=1e-4, atol=1e-5)


def test_a_row_of_weight_zero_may_hold_anything(table):
    y = np.random.default_rng(6).normal(size=N_ROWS)
    weight = np.ones(N_ROWS)
    weight[[3, 7]] = 0
    without = NAERegressor(**FAST).fit(table[weight > 0], y[weight > 0])
    odd, odd_y = table.copy(), y.copy()
    odd.loc[3, "number"], odd_y[7] = np.inf, np.nan
    odd["level"] = odd["level"].cat.add_categories("never else")
    odd.loc[7, "level"] = "never else"
    found = NAERegressor(**FAST).fit(odd, odd_y, sample_weight=weight)
    assert found.model_.schema.to_dict() == without.model_.schema.to_dict()
    np.testing.assert_array_equal(found.predict(table), without.predict(table))


def test_only_the_ratio_of_weights_matters(table):
    y = np.random.default_rng(7).normal(size=N_ROWS) + 2 * table["number"].to_numpy()
    weight = np.random.default_rng(8).uniform(0.5, 2.0, N_ROWS)
    one = NAERegressor(**FAST).fit(table, y, sample_weight=weight)
    other = NAERegressor(**FAST).fit(table, y, sample_weight=weight * 1000)
    assert_same_scores(one, other, table)


def test_weights_change_the_model(table, weight):
    y = np.random.default_rng(9).normal(size=N_ROWS)
    weighted = NAERegressor(**FAST).fit(table, y, sample_weight=weight)
    plain = NAERegressor(**FAST).fit(table, y)
    with pytest.raises(AssertionError):
        assert_same_scores(weighted, plain, table)


@pytest.fixture(scope="module")
def columns() -> Columns:
    random = np.random.default_rng(10)
    level = random.choice(np.array(["a", "b", "c"], dtype=object), N_ROWS)
    return Columns((random.normal(size=N_ROWS), random.normal(size=N_ROWS), level), ("x", "y", "level"))


def prepare(columns: Columns, config: TrainingConfig, rows: np.ndarray, weight: np.ndarray, loss: str = "squared"):
    """Return an engine on the given rows and the rows as tensors."""
    schema = build_schema(columns, infer_kinds(columns), np.ones(N_ROWS), n_knots=6)
    cells = schema.locate(columns).take(rows)
    shape = network_config(n_experts=3, n_active=3, n_members=2, hidden_dim=5)
    inputs, random = piecewise_inputs(schema, 4), np.random.default_rng(0)
    network = draw_network(shape, inputs, 1, random=random, dtype=np.float64)
    training = TrainingRows(
        Cells(padded_slots(schema)[cells.slot], cells.fraction),
        np.random.default_rng(11).uniform(0, 1, (N_ROWS, 1)).round()[rows],
        weight / weight.mean(),
        np.random.default_rng(12).normal(size=(N_ROWS, 1))[rows],
    )
    engine = TorchEngine(Job(network, training, None, make_loss(loss), config, np.random.default_rng(0)))
    engine.module.train()
    return engine, TensorRows.of(training)


def gradients(engine: TorchEngine, batch: TensorRows) -> list[torch.Tensor]:
    """Return the loss and the gradient of all parameters; the step size is still zero, so nothing moves."""
    value = engine.step(batch)
    return [value, *(parameter.grad.clone() for parameter in engine.module.parameters())]


CONFIGS = {
    "default": training_config(),
    "penalties": training_config(variation_penalty=0.3, output_penalty=0.2),
    "dial": training_config(additivity=0.8),
    # The context's share of the variance is a quotient: those of the batches do not average to that of all rows.
    "means": training_config(variation_penalty=0.3, output_penalty=0.2, context_penalty=0.0),
}


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_objective_and_gradient_over_all_rows_equal_those_of_repeated_rows(columns, weight, config, loss):
    kept, rows = np.flatnonzero(weight), repeated(weight)
    weighted = gradients(*prepare(columns, CONFIGS[config], kept, weight[kept], loss))
    plain = gradients(*prepare(columns, CONFIGS[config], rows, np.ones(len(rows)), loss))
    for found, expected in zip(weighted, plain, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    other = gradients(*prepare(columns, CONFIGS[config], kept, np.ones(len(kept)), loss))
    assert not torch.allclose(weighted[1], other[1])


def test_gradients_of_the_batches_of_an_epoch_average_to_that_of_all_rows(columns):
    weight = np.random.default_rng(13).uniform(0.2, 3, N_ROWS)
    engine, training = prepare(columns, CONFIGS["means"], np.arange(N_ROWS), weight)
    whole = gradients(engine, training)
    order = torch.randperm(N_ROWS, generator=torch.Generator().manual_seed(0)).view(4, -1)
    parts = [gradients(engine, training.take(rows)) for rows in order]
    for i, expected in enumerate(whole):
        mean = torch.stack([part[i] for part in parts]).mean(dim=0)
        torch.testing.assert_close(mean, expected, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(parts[0][1], whole[1])
