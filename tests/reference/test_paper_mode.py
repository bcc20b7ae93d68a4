"""``encoder="mlp"`` starts where the paper's model starts, and its tables are as good as they say."""

import math

import numpy as np
import pytest
import torch
from sklearn.preprocessing import QuantileTransformer

from nae import NAERegressor, presets
from nae.encoding import Columns, build_schema
from nae.engines.torch import TorchNetwork
from nae.estimators.settings import resolve
from nae.network import draw_network, quantile_inputs
from nae.parameters import Parameters
from tests.configs import network_config

N_FEATURES, WIDTH, N_EXPERTS = 8, 128, 4


def paper_network(**changes: object) -> TorchNetwork:
    config = {"encoder": "mlp", "n_experts": N_EXPERTS, "n_active": N_EXPERTS, "n_blocks": 4, "hidden_dim": WIDTH}
    inputs = np.linspace(-2, 2, 8 * 20).reshape(N_FEATURES, 20, 1)
    shape = network_config(**{**config, **changes})
    return TorchNetwork(draw_network(shape, inputs, 1, random=np.random.default_rng(0)))


def assert_uniform(parameter: torch.Tensor, bound: float) -> None:
    assert 0.95 * bound < parameter.abs().max() <= bound
    assert parameter.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_encoders_and_experts_start_at_the_papers_scales() -> None:
    network = paper_network()
    for depth, block in enumerate(network.trunk.blocks):
        in_dim = 1 if depth == 0 else WIDTH
        assert_uniform(block.weight, math.sqrt(6 / (in_dim * WIDTH)))
        assert_uniform(block.bias, 1 / math.sqrt(N_FEATURES * in_dim))
    assert_uniform(network.expert_weight, math.sqrt(6 / (WIDTH * N_EXPERTS)))
    assert network.expert_bias.abs().max() <= 1 / math.sqrt(N_FEATURES * WIDTH)
    assert network.expert_bias.abs().max() > 0


@pytest.mark.parametrize("wrong", ["normal", "narrow", "wide", "skewed"])
def test_a_start_that_is_not_uniform_is_found(wrong: str) -> None:
    draw = torch.rand(4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 - 1
    assert_uniform(draw, 1.0)
    others = {"normal": (draw.erfinv() / 3).clamp(-1, 1), "narrow": draw * 0.9, "wide": draw * 1.1, "skewed": draw**3}
    with pytest.raises(AssertionError):
        assert_uniform(others[wrong], 1.0)


def test_the_gate_starts_xavier_normal_and_the_intercept_at_zero() -> None:
    network = paper_network()
    expected = math.sqrt(2 / (N_FEATURES * WIDTH + N_FEATURES * N_EXPERTS))
    assert network.gate.weight.std().item() == pytest.approx(expected, rel=0.02)
    assert network.gate.weight.abs().max() > 3 * expected  # normal, not uniform
    assert not network.intercept.any()


def test_every_block_has_a_norm_of_its_own() -> None:
    network = paper_network()
    scales = [block.scale for block in network.trunk.blocks]
    assert len({id(scale) for scale in scales}) == 4
    assert all(scale.shape == (1, N_FEATURES, 1, WIDTH) for scale in scales)


def test_dropout_follows_the_relu_and_ends_with_training() -> None:
    network = paper_network(n_blocks=1, encoder_dropout=0.25)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        noisy = network.train().trunk(network.inputs)
        plain = network.eval().trunk(network.inputs)
    assert (plain >= 0).all()
    kept = noisy != 0
    torch.testing.assert_close(noisy[kept], plain[kept] / 0.75)
    assert (~kept[plain > 0]).float().mean() == pytest.approx(0.25, abs=0.02)


def test_expert_dropout_thins_the_weights_in_training_alone() -> None:
    network = paper_network(expert_dropout=0.25)
    experts, hidden = torch.randn(500, N_EXPERTS, 1, N_FEATURES, 1), torch.zeros(1, 500, N_EXPERTS * N_FEATURES)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        thinned = network.train().route(experts, hidden, torch.ones(500)).routing
        whole = network.eval().route(experts, hidden, torch.ones(500)).routing
    torch.testing.assert_close(whole.sum(dim=1), torch.ones_like(whole[:, 0]))
    assert (thinned == 0).float().mean() == pytest.approx(0.25, abs=0.02)
    torch.testing.assert_close(thinned[thinned > 0], whole[thinned > 0] / 0.75)


def quantile_column(values: np.ndarray) -> np.ndarray:
    columns = Columns((values,), ("x",))
    schema = build_schema(columns, [("number", "")], np.ones(len(values)), n_knots=5000)
    return quantile_inputs(schema, columns, np.random.default_rng(0))[0, : schema.features[0].n_values, 0]


def test_inputs_are_quantile_normal() -> None:
    found = quantile_column(np.random.default_rng(1).exponential(size=3000))
    assert (np.diff(found) >= 0).all()
    assert found.mean() == pytest.approx(0.0, abs=0.05)
    assert found.std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("spread", "noise"), [(100.0, 1e-5), (1.0, 1e-3), (0.5, 2e-3), (1e-4, 1e-6)])
def test_the_quantile_map_is_fitted_with_a_little_noise(
    spread: float, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(1).normal(size=3000)
    values = spread * (values - values.mean()) / values.std()
    seen = []
    fit = QuantileTransformer.fit

    def watch(self: QuantileTransformer, X: np.ndarray, y: object = None) -> QuantileTransformer:
        seen.append((X[:, 0].copy(), self.n_quantiles, self.output_distribution))
        return fit(self, X, y)

    monkeypatch.setattr(QuantileTransformer, "fit", watch)
    quantile_column(values)
    ((fitted, n_quantiles, distribution),) = seen
    assert (fitted - values).std() == pytest.approx(noise, rel=0.05)
    assert (n_quantiles, distribution) == (2000, "normal")


def test_the_scale_of_a_column_does_not_matter() -> None:
    values = np.random.default_rng(1).normal(size=3000)
    inner = slice(30, -30)
    np.testing.assert_allclose(quantile_column(values)[inner], quantile_column(1e-5 * values)[inner], atol=0.1)


def test_the_preset_trains_as_the_paper_does_and_adds_nothing_of_ours() -> None:
    parameters = NAERegressor(**presets.paper("housing")).get_params()
    settings = resolve(Parameters.read(parameters), n_rows=14448, n_features=8)
    training, network = settings.training, settings.network
    assert (training.schedule, training.max_epochs, training.patience) == ("cosine", 1000, 250)
    assert (training.batch_size, training.learning_rate, training.weight_decay) == (2048, 5.97e-4, 5.29e-5)
    assert (training.variation_penalty, training.output_penalty) == (0.1, 1.97e-5)
    assert (training.context_penalty, training.additivity) == (0.0, None)
    assert (network.encoder_dropout, network.expert_dropout, network.norm) == (0.1, 0.2, "layer")
    assert (network.gate, network.routing, network.n_members) == ("additive", "softmax", 1)


def small_paper_model(X: dict[str, np.ndarray], y: np.ndarray) -> NAERegressor:
    parameters = presets.paper("housing") | {"max_epochs": 20, "hidden_dim": 16, "batch_size": 128}
    return NAERegressor(**parameters, random_state=0, n_jobs=1).fit(X, y)


def test_tables_of_the_papers_model_differ_little_from_its_network_and_say_how_much() -> None:
    random = np.random.default_rng(0)
    X = {"a": random.normal(size=600), "b": random.uniform(size=600)}
    model = small_paper_model(X, X["a"] * X["b"])
    assert model.table_error_ > 1e-5  # linear between knots, where the network bends
    assert model.table_error_ < 0.1
    assert model.model_.training.table_error == model.table_error_


def test_nothing_lies_between_levels_so_their_tables_are_exact() -> None:
    random = np.random.default_rng(0)
    X = {
        "level": random.choice(list("pqr"), size=600).astype(object),
        "flag": random.uniform(size=600) < 0.5,
        "count": random.integers(0, 4, size=600).astype(float),
    }
    model = small_paper_model(X, (X["level"] == "p") * X["count"] + X["flag"])
    assert model.table_error_ < 1e-5
