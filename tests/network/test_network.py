"""Networks as arrays: how they are drawn, and that their tables are what torch evaluates."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nae.encoding import Category, Number, Schema
from nae.engines.torch import TorchNetwork
from nae.network import ADDITIONS, ENCODERS, GATES, START, Network, NetworkConfig, draw_network
from nae.network.network import ROUTINGS
from nae.training.assemble import padded_slots
from tests.configs import network_config
from tests.engines.forms import draw_forms
from tests.engines.torch.networks import moved

N_FEATURES, N_SLOTS, WIDTH, N_OUTPUTS = 3, 7, 4, 2
SIZES = {"n_experts": 5, "n_active": 5, "n_members": 2, "hidden_dim": 6, "gate_rank": 3}


def inputs_of(n_features: int = N_FEATURES) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n_features, N_SLOTS, WIDTH))


def drawn(config: NetworkConfig | None = None, *, seed: int = 0, **given: Any) -> Network:
    config = network_config(**SIZES) if config is None else config
    given = {"inputs": inputs_of(), "n_outputs": N_OUTPUTS, "dtype": np.float64} | given
    return draw_network(config, random=np.random.default_rng(seed), **given)


def test_an_intercept_begins_where_it_is_told_to() -> None:
    intercept = drawn(intercept=np.array([-1.0, 2.0])).arrays["intercept"]
    np.testing.assert_array_equal(intercept, [[-1.0, -1.0], [2.0, 2.0]])
    assert intercept.flags.c_contiguous  # as the native core reads it


@pytest.mark.parametrize(
    ("gate", "width"), [("additive", 5 * N_FEATURES), ("low-rank", 3), ("deep", 3), ("diagonal", 5)]
)
def test_every_array_has_the_shape_that_the_module_says(gate: str, width: int) -> None:
    arrays = drawn(network_config(gate=gate, n_blocks=2, **SIZES)).arrays
    expected: dict[str, tuple[int, ...]] = {
        "expert_weight": (N_FEATURES, 6, 5, N_OUTPUTS, 2),
        "expert_bias": (N_FEATURES, 1, 5, N_OUTPUTS, 2),
        "intercept": (N_OUTPUTS, 2),
        "gate.weight": (N_FEATURES, 6, width, 2),
        "gate.bias": (5 * N_FEATURES if gate == "diagonal" else width, 2),
    }
    if gate in ("low-rank", "deep"):
        expected |= {"gate.mix": (2, 3, 5 * N_FEATURES), "gate.mix_bias": (2, 1, 5 * N_FEATURES)}
    for block, n_inputs in ((0, WIDTH), (1, 6)):
        expected[f"trunk.blocks.{block}.weight"] = (2, N_FEATURES, n_inputs, 6)
        expected |= {f"trunk.blocks.{block}.{name}": (2, N_FEATURES, 1, 6) for name in ("bias", "scale", "shift")}
    assert {name: array.shape for name, array in arrays.items()} == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_is_in_the_precision_of_training(dtype: type[np.floating]) -> None:
    network = drawn(dtype=dtype)
    assert network.dtype == network.inputs.dtype == np.dtype(dtype)
    assert {array.dtype for array in network.arrays.values()} == {np.dtype(dtype)}
    assert network.begin_at(np.zeros((N_FEATURES * N_SLOTS + 1, N_OUTPUTS, 2))).arrays[START].dtype == dtype


def test_the_seed_decides_and_the_precision_does_not() -> None:
    one, again, other, single = drawn(), drawn(), drawn(seed=1), drawn(dtype=np.float32)
    assert one.noise == again.noise == single.noise != other.noise
    for name, array in one.arrays.items():
        assert np.array_equal(array, again.arrays[name])
        assert np.array_equal(array.astype(np.float32), single.arrays[name])
    assert not np.array_equal(one.arrays["expert_weight"], other.arrays["expert_weight"])
    assert not np.array_equal(*np.moveaxis(one.arrays["expert_weight"], -1, 0))  # members begin elsewhere


def test_dropout_and_routing_draw_nothing() -> None:
    plain = drawn().arrays
    for changes in ({"expert_dropout": 0.3}, {"routing": "gumbel"}, {"n_active": 2}):
        arrays = drawn(network_config(**SIZES | changes)).arrays
        assert all(np.array_equal(array, plain[name]) for name, array in arrays.items())


def assert_uniform(array: np.ndarray, bound: float) -> None:
    assert 0.95 * bound < np.abs(array).max() <= bound
    assert array.std() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert abs(array.mean()) < 0.05 * bound


def test_numbers_that_are_not_uniform_are_noticed() -> None:
    random = np.random.default_rng(0)
    assert_uniform(random.uniform(-2, 2, 10_000), 2.0)
    for wrong in (random.uniform(-1, 1, 10_000), random.uniform(0, 2, 10_000), 2 * np.sign(random.normal(size=10_000))):
        with pytest.raises(AssertionError):
            assert_uniform(wrong, 2.0)


def test_weights_on_knots_keep_the_scale_of_what_they_are_given() -> None:
    sizes = SIZES | {"hidden_dim": 200, "n_blocks": 2}
    arrays = drawn(network_config(**sizes)).arrays
    for block, n_inputs in ((0, WIDTH), (1, 200)):
        assert_uniform(arrays[f"trunk.blocks.{block}.weight"], math.sqrt(3 / n_inputs))
        assert_uniform(arrays[f"trunk.blocks.{block}.bias"], 1 / math.sqrt(n_inputs))
    assert_uniform(arrays["expert_weight"], 0.3 * math.sqrt(3 / 200))  # experts start near zero
    for name, value in (("expert_bias", 0), ("intercept", 0), ("gate.bias", 0), ("trunk.blocks.0.shift", 0)):
        assert (arrays[name] == value).all()
    assert (arrays["trunk.blocks.1.scale"] == 1).all()


@pytest.mark.parametrize(("gate", "fan"), [("additive", 3 * 200 + 15), ("low-rank", 3 * 200 + 3), ("diagonal", 205)])
def test_gates_begin_normal_with_xaviers_deviation(gate: str, fan: int) -> None:
    arrays = drawn(network_config(gate=gate, **SIZES | {"hidden_dim": 200})).arrays
    weight, deviation = arrays["gate.weight"], math.sqrt(2 / fan)
    assert weight.std() == pytest.approx(deviation, rel=0.05)
    assert np.abs(weight).max() > 2.5 * deviation  # not uniform
    if "gate.mix" in arrays:
        assert arrays["gate.mix"].std() == pytest.approx(1 / math.sqrt(3), rel=0.2)
        assert not arrays["gate.mix_bias"].any()


def test_curves_of_one_direction_begin_nearly_flat() -> None:
    free = drawn()
    schema = Schema(tuple(Number(name, np.arange(5.0)) for name in "abc"))
    forms = replace(draw_forms(free, schema, seed=0), rises=np.array([1, -1, 0]), bends=np.zeros(3, dtype=int))
    kept = drawn(forms=forms)
    wanted = free.arrays["expert_weight"] * np.reshape([0.1, 0.1, 1.0], (3, 1, 1, 1, 1))
    np.testing.assert_allclose(kept.arrays["expert_weight"], wanted)


def test_features_that_never_vary_are_not_live() -> None:
    assert drawn().is_live.tolist() == [True] * 3
    assert drawn(constant=np.array([False, True, False])).is_live.tolist() == [True, False, True]


def test_other_arrays_make_another_network_and_leave_the_first() -> None:
    one = drawn()
    other = one.with_arrays({name: array + 1 for name, array in one.arrays.items()})
    assert one.arrays["intercept"].max() == 0
    assert other.arrays["intercept"].min() == 1
    assert (other.config, other.noise) == (one.config, one.noise)


def test_what_is_added_to_a_start_is_named() -> None:
    assert set(ADDITIONS) < set(drawn().arrays)
    assert START not in drawn().arrays
    assert drawn().start is None


CASES = [
    *({"gate": gate, "routing": routing} for gate in GATES for routing in ROUTINGS),
    *({"gate": gate, "encoder": "mlp", "norm": norm} for gate in GATES for norm in ("layer", "batch")),
    *({"n_blocks": n_blocks} for n_blocks in (1, 3)),
    {"n_experts": 1, "n_active": 1},
    {"n_active": 2},
    {"n_members": 1},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("has_start", [False, True], ids=["zero", "start"])
@pytest.mark.parametrize("constant", [None, 1], ids=["live", "constant"])
def test_tables_are_what_torch_evaluates(case: dict[str, Any], has_start: bool, constant: int | None) -> None:
    config = network_config(**SIZES | case)
    is_constant = None if constant is None else np.arange(N_FEATURES) == constant
    network = moved(drawn(config, constant=is_constant))
    if has_start:
        shape = (N_FEATURES * N_SLOTS + 1, N_OUTPUTS, config.n_members)
        network = network.begin_at(np.random.default_rng(2).normal(size=shape))
    made = TorchNetwork(network).eval()
    padded = np.random.default_rng(3).permutation(N_FEATURES * N_SLOTS)[:17]
    experts, gate, intercept = network.to_tables(padded)
    with torch.no_grad():
        tables, terms = made.evaluate_knots()
        offset = made.offset.numpy()
    wanted = tables.view(-1, config.n_experts, N_OUTPUTS, config.n_members).numpy()[padded]
    np.testing.assert_allclose(experts, wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gate.terms, terms.permute(1, 2, 0).numpy()[padded], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(intercept, offset)
    assert gate.kind == config.gate
    if constant is not None and not has_start:
        assert not experts[padded // N_SLOTS == constant].any()
        assert experts[padded // N_SLOTS != constant].any()
    assert network.routing.name == ROUTINGS[config.routing].name


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("has_start", [False, True], ids=["zero", "start"])
def test_tables_have_the_forms_that_torch_evaluates(gate: str, seed: int, has_start: bool) -> None:
    schema = Schema((Number("a", np.arange(5.0)), Category("b", ("x", "y")), Number("c", np.arange(4.0))))
    network = moved(drawn(network_config(**SIZES | {"gate": gate})))
    network = replace(network, forms=draw_forms(network, schema, seed=seed))
    if has_start:
        shape = (N_FEATURES * N_SLOTS + 1, N_OUTPUTS, network.config.n_members)
        network = network.begin_at(np.random.default_rng(2).normal(size=shape))
    experts, gate_tables, _ = network.to_tables(np.arange(N_FEATURES * N_SLOTS))
    with torch.no_grad():
        tables, terms = TorchNetwork(network).eval().evaluate_knots()
    np.testing.assert_allclose(experts.reshape(tables.shape), tables.numpy(), rtol=1e-10, atol=1e-12)
    # Terms of features that lead are rounded for single precision.
    np.testing.assert_allclose(gate_tables.terms, terms.permute(1, 2, 0).numpy(), rtol=1e-10, atol=5e-6)


def test_tables_that_differ_are_told_apart() -> None:
    network = moved(drawn())
    other = network.with_arrays({**network.arrays, "gate.weight": network.arrays["gate.weight"] * (1 + 1e-6)})
    padded = np.arange(N_FEATURES * N_SLOTS)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(
            other.to_tables(padded)[1].terms, network.to_tables(padded)[1].terms, rtol=1e-10, atol=1e-12
        )


def test_tables_of_a_single_precision_network_are_computed_in_double() -> None:
    network = moved(drawn(dtype=np.float32))
    double = network.with_arrays(network.arrays)
    experts, gate, intercept = network.to_tables(np.arange(N_FEATURES * N_SLOTS))
    assert {experts.dtype, gate.terms.dtype, gate.bias.dtype, intercept.dtype} == {np.dtype(np.float64)}
    wide = Network(
        double.config,
        double.inputs.astype(np.float64),
        N_OUTPUTS,
        double.is_live,
        double.noise,
        {name: array.astype(np.float64) for name, array in double.arrays.items()},
    )
    np.testing.assert_array_equal(experts, wide.to_tables(np.arange(N_FEATURES * N_SLOTS))[0])


def test_slots_of_the_schema_are_found_among_the_padded_ones() -> None:
    schema = Schema((Number("a", np.arange(5.0)), Category("b", ("x",)), Number("c", np.arange(3.0))))
    network = moved(drawn())
    padded = padded_slots(schema)
    everything = network.to_tables(np.arange(N_FEATURES * N_SLOTS))[0]
    np.testing.assert_array_equal(network.to_tables(padded)[0], everything[padded])


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_an_estimate_of_work_counts_what_an_encoder_evaluates(name: str) -> None:
    counted = ENCODERS[name].count_evaluated(n_slots=100, batch_size=64)
    assert counted == (100 if ENCODERS[name].has_exact_tables else 64)
