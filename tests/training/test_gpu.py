"""On a GPU the same model comes out: the same batches, the same noise, the same steps."""

import numpy as np
import pytest
import torch

from nae.training import make_loss, train
from tests.configs import training_config
from tests.training.problems import N_ROWS, Problem

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def trained(device: str, *, dropout: float, **config: object) -> dict[str, torch.Tensor]:
    problem = Problem(dropout=dropout)
    network = problem.network().to(device)
    train(
        network,
        problem.folded(np.arange(N_ROWS) % 4).to(torch.device(device)),
        None,
        make_loss("squared"),
        training_config(**{"batch_size": 16, "max_epochs": 12, "warmup_steps": 1, "least_steps": 0, **config}),
        generator=torch.Generator().manual_seed(0),
    )
    return {name: tensor.cpu() for name, tensor in network.state_dict().items()}


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
    for name, tensor in trained("cuda", **config).items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-6, atol=1e-8)
