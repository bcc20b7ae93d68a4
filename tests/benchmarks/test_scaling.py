from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.scaling import BEGIN, END, Measurement, Sizes, fit_model, hold_out, insert, predict, read_measurements
from nae.network import draw_network
from tests.configs import network_config

BASE = Sizes(32, 2, 512)


@pytest.mark.parametrize("sizes", [BASE, Sizes(8, 2, 512), Sizes(40, 1, 64, n_experts=16, hidden_dim=64)])
def test_the_weights_are_those_of_a_network(sizes: Sizes) -> None:
    config = network_config(
        gate="low-rank" if sizes.is_low_rank else "additive",
        n_experts=sizes.n_experts, n_active=sizes.n_experts, n_members=sizes.n_members,
        hidden_dim=sizes.hidden_dim, gate_rank=sizes.gate_rank,
    )  # fmt: skip
    inputs = np.ones((sizes.n_features, 5, 50))
    network = draw_network(config, inputs, 1, random=np.random.default_rng(0))
    assert sum(array.size for array in network.arrays.values()) == sizes.n_parameters


def test_a_fit_finds_the_rates_behind_the_measurements() -> None:
    grid = [replace(BASE, n_features=n, batch=b) for n in (8, 64, 256) for b in (64, 1024, 8192)]
    points = [
        Measurement(one, 1e-3 + 1e-12 * one.multiplications("cpu") + 1e-9 * one.row_numbers("cpu")) for one in grid
    ]
    fit = fit_model(points, "cpu")
    assert (fit.floor, fit.per_multiplication, fit.per_number) == pytest.approx((1e-3, 1e-12, 1e-9), rel=1e-4)
    assert fit.error < 1e-9
    assert fit.seconds(BASE) == pytest.approx(
        1e-3 + 1e-12 * BASE.multiplications("cpu") + 1e-9 * BASE.row_numbers("cpu")
    )


def test_the_measurement_held_out_is_not_fitted() -> None:
    points = [Measurement(replace(BASE, batch=2**i), seconds=float(i)) for i in range(1, 7)]
    known, unseen = hold_out(points)
    assert len(known) == 5
    assert unseen not in known
    assert unseen.seconds == 5.0


def test_twice_the_gpus_need_half_the_steps_and_the_network() -> None:
    fit = fit_model([Measurement(BASE, 1e-3), Measurement(replace(BASE, batch=4096), 4e-3)], "cuda")
    one = predict(fit, BASE, n_rows=2**20, n_gpus=1, gigabytes_per_second=10)
    two = predict(fit, BASE, n_rows=2**20, n_gpus=2, gigabytes_per_second=10)
    assert (one.n_steps, two.n_steps) == (2048, 1024)
    assert one.wait_seconds == 0
    assert two.wait_seconds == pytest.approx(BASE.network_bytes() / 1e10)


def test_the_measurements_in_the_repository_can_be_read() -> None:
    found = read_measurements(Path("benchmarks/results"))
    assert len(found["cpu"]) >= 10
    assert len(found["cuda"]) >= 5


def test_only_the_generated_part_of_the_page_changes() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert insert(page, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
