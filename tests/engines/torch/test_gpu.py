"""On a GPU the same model comes out: the same batches, the same noise, the same steps."""

from collections.abc import Mapping
from contextlib import closing

import numpy as np
import pytest
import torch

import nae
from nae._typing import AnyArray
from nae.engines.torch import TorchEngine
from nae.training import train
from tests.configs import training_config
from tests.training.problems import N_ROWS, Problem

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def trained(device: str, *, dropout: float, **given: object) -> Mapping[str, AnyArray]:
    problem = Problem(dropout=dropout)
    config = training_config(**{"batch_size": 16, "max_epochs": 12, "warmup_steps": 1, "least_steps": 0, **given})
    with closing(TorchEngine(problem.job(problem.folded(np.arange(N_ROWS) % 4), config=config), device=device)) as one:
        train(one, config)
        return one.network.arrays


@pytest.mark.parametrize(
    "config",
    [
        {"dropout": 0.0},
        {"dropout": 0.3},
        {"dropout": 0.0, "additivity": 0.9},
        {"dropout": 0.3, "schedule": "plateau", "patience": 2, "averaged_steps": 8},
    ],
    ids=["plain", "dropout", "dial", "averaged"],
)
def test_both_devices_train_the_same_model(config: dict[str, object]) -> None:
    expected = trained("cpu", **config)
    for name, array in trained("cuda", **config).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-6, atol=1e-8)


def test_promises_hold_there() -> None:
    random = np.random.default_rng(0)
    X = random.uniform(size=(600, 3))
    y = np.sin(6 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    asked = {"monotonic_cst": {"x0": 1}, "max_effect": {"x1": 0.2}, "convex": ["x2"]}
    model = nae.NAERegressor(device="cuda", engine="torch", max_epochs=30, random_state=0, **asked).fit(X, y)
    assert model.model_.training.device == "cuda"
    assert model.certify(monotone={"x0": "+"}, max_effect={"x1": 0.2}, isolated=["x2"]).all_proven
