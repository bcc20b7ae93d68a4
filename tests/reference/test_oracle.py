"""The network and its tables equal the paper's equations, for every variant, gate and encoder."""

import numpy as np
import pytest
import torch

from nae.encoding import Columns
from nae.engines.torch.network import Routed
from nae.links import Identity
from nae.network import ENCODERS, NetworkConfig
from nae.tables import TableModel
from nae.training.assemble import Scale, assemble
from tests.configs import network_config
from tests.reference.bridge import Setting, make_setting, mean_over_members, oracle_models
from tests.reference.equations import run

SMALL = {"n_blocks": 2, "hidden_dim": 5, "n_experts": 4, "n_members": 2, "gate_rank": 3}
CASES = {
    "nae, all experts": {"routing": "softmax", "n_active": 4},
    "nae, two of four": {"routing": "softmax", "n_active": 2},
    "nae, low-rank gate": {"routing": "softmax", "n_active": 4, "gate": "low-rank"},
    "nae, deep gate": {"routing": "softmax", "n_active": 3, "gate": "deep"},
    "nae, own gate": {"routing": "softmax", "n_active": 4, "gate": "diagonal"},
    "nae-e, two of four": {"routing": "equal", "n_active": 2},
    "nae-e, low-rank gate": {"routing": "equal", "n_active": 3, "gate": "low-rank"},
    "nae-d": {"routing": "gumbel", "n_active": 4, "gate": "diagonal"},
    "nae-d, two of four": {"routing": "gumbel", "n_active": 2, "gate": "diagonal"},
    "paper's encoder": {"routing": "softmax", "n_active": 4, "encoder": "mlp"},
    "paper's encoder, batch norm": {"routing": "softmax", "n_active": 2, "encoder": "mlp", "norm": "batch"},
    "paper's encoder, nae-e": {"routing": "equal", "n_active": 2, "encoder": "mlp"},
    "paper's encoder, nae-d": {"routing": "gumbel", "n_active": 4, "encoder": "mlp", "gate": "diagonal"},
    "one expert": {"routing": "softmax", "n_active": 1, "n_experts": 1},
}
SCALE = Scale(centre=np.array([1.5, -0.3]), spread=np.array([2.0, 0.7]))


def config_of(case: str) -> NetworkConfig:
    return network_config(**{**SMALL, **CASES[case]})


def tables_of(setting: Setting) -> TableModel:
    cells = setting.schema.locate(setting.columns)
    weights = np.ones(len(setting.rows))
    return assemble(setting.drawn, setting.schema, cells, weights, SCALE, link=Identity(), outputs=("first", "second"))


def centred(setting: Setting, rows: list[list[object]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the oracle's contributions, bounds (row, feature, output) and scores on the scale of the target.

    Each feature's contributions average zero over the training rows.
    """
    models = oracle_models(setting)
    trained = [mean_over_members(models, row) for row in setting.rows]
    mean = np.mean([outcome.contributions for outcome in trained], axis=0)
    found = [mean_over_members(models, row) for row in rows]
    values, lower, upper = (
        np.array([getattr(outcome, name) for outcome in found]) - mean for name in ("contributions", "lower", "upper")
    )
    score = np.array([outcome.prediction for outcome in found]) * SCALE.spread + SCALE.centre
    return values * SCALE.spread, lower * SCALE.spread, upper * SCALE.spread, score


def at_once(setting: Setting) -> Routed:
    """What the network computes for all rows at once, which keeps experts and routing."""
    network, cells = setting.network, setting.cells
    return network.route(*network.evaluate().at(cells), torch.ones(len(setting.rows), dtype=torch.float64))


@pytest.mark.parametrize("case", CASES)
def test_the_network_computes_the_equations(case: str) -> None:
    setting = make_setting(config_of(case))
    with torch.no_grad():
        routed, whole = setting.network(setting.cells), at_once(setting)
    for member, model in enumerate(oracle_models(setting)):
        for t, row in enumerate(setting.rows):
            expected = run(model, row)
            np.testing.assert_allclose(routed.score[t, :, member], expected.prediction, atol=1e-10)
            for i in range(len(row)):
                np.testing.assert_allclose(whole.experts[t, :, :, i, member], expected.outputs[i], atol=1e-10)
                np.testing.assert_allclose(whole.routing[t, :, i, member], expected.weights[i], atol=1e-10)
                for found in (routed, whole):
                    np.testing.assert_allclose(
                        found.contributions[t, :, i, member], expected.contributions[i], atol=1e-10
                    )


@pytest.mark.parametrize("case", CASES)
def test_the_tables_hold_the_equations(case: str) -> None:
    config = config_of(case)
    # A network on rows equals its tables at the knots alone, so there every value gets one.
    setting = make_setting(config, n_knots=5 if ENCODERS[config.encoder].has_exact_tables else 100)
    model = tables_of(setting)
    values, lower, upper, score = centred(setting, setting.rows)
    found = model.contributions(setting.columns)
    np.testing.assert_allclose(found.values, values, atol=1e-10)
    np.testing.assert_allclose(found.lower, lower, atol=1e-10)
    np.testing.assert_allclose(found.upper, upper, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(setting.columns), score, atol=1e-10)


@pytest.mark.parametrize("case", ["nae, all experts", "nae-e, two of four", "nae, deep gate", "nae-d"])
def test_values_no_training_row_had_follow_the_equations(case: str) -> None:
    setting = make_setting(config_of(case))
    model = tables_of(setting)
    columns = Columns(
        (
            np.array([-50.0, 50.0, 0.123, 2.9, 1.0]),  # beyond both ends, and between knots
            np.array([0.5, np.nan, 7.25, 100.0, -3.0]),
            np.array(["a", "never seen", None, "c", "b"], dtype=object),
        ),
        setting.columns.names,
    )
    rows = [list(row) for row in zip(*columns.arrays, strict=True)]
    values, lower, upper, score = centred(setting, rows)
    found = model.contributions(columns)
    np.testing.assert_allclose(found.values, values, atol=1e-10)
    np.testing.assert_allclose(found.lower, lower, atol=1e-10)
    np.testing.assert_allclose(found.upper, upper, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(columns), score, atol=1e-10)


@pytest.mark.parametrize("case", ["nae, all experts", "nae, low-rank gate", "nae-e, two of four", "nae-d"])
def test_single_precision_stays_within_a_millionth_of_the_scale(case: str) -> None:
    setting = make_setting(config_of(case), dtype=np.float32)
    model = tables_of(setting)
    assert model.experts.dtype == np.float32
    values, _, _, score = centred(setting, setting.rows)
    size = np.abs(model.experts).max()
    np.testing.assert_allclose(model.contributions(setting.columns).values, values, atol=1e-6 * size)
    np.testing.assert_allclose(model.decision_function(setting.columns), score, atol=1e-6 * size)


def test_the_comparison_notices_a_wrong_equation() -> None:
    setting = make_setting(config_of("nae, two of four"))
    with torch.no_grad():
        score = setting.network(setting.cells).score[:, :, 0].numpy()
    (model, *_) = oracle_models(setting)
    wrong = type(model)(**{**vars(model), "n_active": 3})
    right = np.array([run(model, row).prediction for row in setting.rows])
    other = np.array([run(wrong, row).prediction for row in setting.rows])
    assert np.abs(score - right).max() < 1e-10
    assert np.abs(score - other).max() > 1e-3
