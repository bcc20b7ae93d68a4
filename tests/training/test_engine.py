"""An engine: which rows a step sees, what it does to members, and what it keeps."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nae.network import Network
from nae.training import TrainingRows, make_loss
from nae.training.engine import TorchEngine
from nae.training.workers import ALONE, Alone, Workers
from tests.configs import training_config
from tests.training.problems import N_ROWS, Problem


def engine_of(
    problem: Problem,
    rows: TrainingRows | None = None,
    *,
    network: Network | None = None,
    workers: Workers = ALONE,
    **config: object,
) -> TorchEngine:
    return TorchEngine(
        network or problem.network(),
        rows or problem.rows(),
        None,
        make_loss("squared"),
        training_config(**config),
        generator=torch.Generator().manual_seed(0),
        workers=workers,
    )


def first_of(mine: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the first member's part of what two members have."""
    axis = next(i for i, (a, b) in enumerate(zip(mine.shape, other.shape, strict=True)) if a != b)
    return other.narrow(axis, 0, 1)


@pytest.mark.parametrize("batch_size", [10, 16, 64, 1000])
def test_batches_are_of_one_size_and_hold_no_row_twice(batch_size: int) -> None:
    one = engine_of(Problem(), batch_size=batch_size)
    parts = list(Problem().rows().batches(one.n_batches, one.batch_size, torch.Generator().manual_seed(0)))
    assert len({len(part) for part in parts}) == 1
    rows = torch.cat(parts).tolist()
    assert len(rows) == len(set(rows)) > N_ROWS - len(parts)
    assert len(parts) == max(1, round(N_ROWS / batch_size))


def test_epochs_shuffle_differently_and_repeat_with_the_seed() -> None:
    rows, generator = Problem().rows(), torch.Generator().manual_seed(0)
    first, second = (torch.cat(list(rows.batches(4, 16, generator))) for _ in range(2))
    again = torch.cat(list(rows.batches(4, 16, torch.Generator().manual_seed(0))))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_an_epoch_takes_a_step_per_batch_at_the_rates_of_the_schedule() -> None:
    asked: list[int] = []

    def rate(step: int) -> float:
        asked.append(step)
        return 0.0

    one = engine_of(Problem(), batch_size=16)
    before = one.snapshot()
    for _ in range(2):
        one.train_epoch(rate)
    assert asked == list(range(8))
    assert one.n_steps == 8
    assert all(torch.equal(tensor, before[name]) for name, tensor in one.snapshot().items())


def test_members_are_trained_as_if_each_were_alone() -> None:
    problem, alone = Problem(n_members=2), Problem(n_members=1)
    both, single = (engine_of(one, variation_penalty=0.3, output_penalty=0.2) for one in (problem, alone))
    with torch.no_grad():  # the lone network is the first of the two
        for mine, other in zip(single.network.parameters(), both.network.parameters(), strict=True):
            mine.copy_(first_of(mine, other))
    both.step(problem.rows())
    single.step(alone.rows())
    for mine, other in zip(single.network.parameters(), both.network.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, first_of(mine.grad, other.grad))


def test_a_member_never_sees_the_rows_it_holds_out() -> None:
    problem, fold = Problem(n_members=2), np.arange(N_ROWS) % 4
    gradients = []
    for shift in (0.0, 100.0):
        rows = problem.folded(fold)
        rows.target[fold == 0] += shift
        one = engine_of(problem, rows)
        one.step(rows)
        gradients.append(one.network.expert_weight.grad.clone())
    first, second = (torch.abs(gradients[0] - gradients[1])[..., member].max() for member in (0, 1))
    assert first == 0
    assert second > 0.1


def test_workers_drop_other_weights_each() -> None:
    class Second(Alone):
        rank = 1

    noises = []
    for workers in (Alone(), Second()):
        problem = Problem(dropout=0.5)
        one = engine_of(problem, workers=workers)
        assert one.network.noise is not None
        noises.append(int(one.network.noise))
    assert noises[1] - noises[0] == 2**40


def test_one_expert_needs_no_dial() -> None:
    assert engine_of(Problem(n_experts=1), additivity=0.9).dial is None
    assert engine_of(Problem(n_experts=2), additivity=0.9).dial is not None
    assert engine_of(Problem(n_experts=2)).dial is None


def test_an_offset_is_added_to_the_score() -> None:
    problem = Problem()
    rows = problem.rows()
    shifted = replace(rows, target=rows.target + 5, base=torch.full((N_ROWS, 1), 5.0, dtype=torch.float64))
    torch.testing.assert_close(engine_of(problem).step(rows), engine_of(problem).step(shifted))


def test_a_snapshot_brings_the_weights_back() -> None:
    one = engine_of(Problem(), batch_size=16)
    snapshot = one.snapshot()
    loss = one.train_epoch(lambda _: 0.05)
    assert not torch.equal(one.network.expert_weight, snapshot["expert_weight"])
    one.restore(snapshot)
    assert torch.equal(one.network.expert_weight, snapshot["expert_weight"])
    assert one.train_epoch(lambda _: 0.0) == pytest.approx(loss, rel=0.5)


@pytest.mark.parametrize("config", [{}, {"additivity": 0.9}, {"averaged_steps": 4}], ids=["plain", "dial", "averaged"])
def test_an_engine_goes_on_from_its_state(config: dict[str, object]) -> None:
    one, other = (engine_of(Problem(dropout=0.2), batch_size=16, **config) for _ in range(2))
    one.train_epoch(lambda _: 0.05)
    state = one.state()
    other.load(replace(state, tensors={name: tensor.clone() for name, tensor in state.tensors.items()}))
    assert one.train_epoch(lambda _: 0.01) == other.train_epoch(lambda _: 0.01)
    found = other.snapshot()
    assert all(torch.equal(tensor, found[name]) for name, tensor in one.snapshot().items())
