"""AdamW moves parameters as torch's own does, and does not bring torch's compiler along."""

import subprocess
import sys

import torch
from torch.nn import Parameter

from nae.engines.torch.optimiser import AdamW


def draw(seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for shape in ((3, 4), (5,), (2, 2))]


def give_gradients(parameters: list[Parameter], seed: int) -> None:
    for each, gradient in zip(parameters[:2], draw(seed), strict=False):  # the last has none
        each.grad = gradient


def test_it_moves_as_torchs_own_does() -> None:
    found, expected = ([Parameter(value) for value in draw(0)] for _ in range(2))
    ours, theirs = AdamW(found, weight_decay=0.3), torch.optim.AdamW(expected, weight_decay=0.3)
    for step in range(1, 6):
        give_gradients(found, step)
        give_gradients(expected, step)
        ours.set_rate(0.1 / step)
        theirs.param_groups[0]["lr"] = 0.1 / step
        ours.step()
        theirs.step()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    ours.forget_gradients()
    assert all(each.grad is None for each in found)


def test_a_kept_state_goes_on_alike() -> None:
    through, halted = ([Parameter(value) for value in draw(0)] for _ in range(2))
    first, second = AdamW(through, weight_decay=0.1), AdamW(halted, weight_decay=0.1)
    for optimiser, parameters in ((first, through), (second, halted)):
        optimiser.set_rate(0.05)
        give_gradients(parameters, 1)
        optimiser.step()
    third = AdamW(halted, weight_decay=0.1)
    third.load({name: tensor.clone() for name, tensor in second.tensors().items()})
    third.set_rate(0.05)
    for optimiser, parameters in ((first, through), (third, halted)):
        give_gradients(parameters, 2)
        optimiser.step()
    assert all(torch.equal(one, other) for one, other in zip(through, halted, strict=True))


def test_a_fit_does_not_import_torchs_compiler() -> None:
    script = (
        "import sys, numpy as np; from nae import NAERegressor; X = np.random.default_rng(0).normal(size=(300, 2)); "
        "NAERegressor(n_members=1, max_epochs=2, engine='torch').fit(X, X[:, 0]); "
        "assert 'torch' in sys.modules; sys.exit('torch._dynamo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
