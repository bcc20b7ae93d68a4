"""The engine of torch: which rows a step sees, what it does to members, what it keeps, and what it gives back."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nae.engines.torch import TorchEngine
from nae.engines.torch.rows import TensorRows
from nae.network import Network
from nae.training import TrainingRows
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
    return TorchEngine(problem.job(rows, network=network, config=training_config(**config), workers=workers))


def tensors(rows: TrainingRows) -> TensorRows:
    return TensorRows.of(rows)


def first_of(mine: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the first member's part of what two members have."""
    axis = next(i for i, (a, b) in enumerate(zip(mine.shape, other.shape, strict=True)) if a != b)
    return other.narrow(axis, 0, 1)


@pytest.mark.parametrize("batch_size", [10, 16, 64, 1000])
def test_batches_are_of_one_size_and_hold_no_row_twice(batch_size: int) -> None:
    one = engine_of(Problem(), batch_size=batch_size)
    parts = list(one.window.batches(one.n_batches, one.batch_size, np.random.default_rng(0)))
    assert len({len(part) for part in parts}) == 1
    rows = torch.cat(parts).tolist()
    assert len(rows) == len(set(rows)) > N_ROWS - len(parts)
    assert len(parts) == max(1, round(N_ROWS / batch_size))


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
    assert all(np.array_equal(array, before[name]) for name, array in one.snapshot().items())


def test_members_are_trained_as_if_each_were_alone() -> None:
    problem, alone = Problem(n_members=2), Problem(n_members=1)
    both, single = (engine_of(one, variation_penalty=0.3, output_penalty=0.2) for one in (problem, alone))
    with torch.no_grad():  # the lone network is the first of the two
        for mine, other in zip(single.module.parameters(), both.module.parameters(), strict=True):
            mine.copy_(first_of(mine, other))
    both.step(tensors(problem.rows()))
    single.step(tensors(alone.rows()))
    for mine, other in zip(single.module.parameters(), both.module.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, first_of(mine.grad, other.grad))


def test_a_member_never_sees_the_rows_it_holds_out() -> None:
    problem, fold = Problem(n_members=2), np.arange(N_ROWS) % 4
    gradients = []
    for shift in (0.0, 100.0):
        rows = problem.folded(fold)
        rows.target[fold == 0] += shift
        one = engine_of(problem, rows)
        one.step(tensors(rows))
        gradients.append(one.module.expert_weight.grad.clone())
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
        assert one.module.noise is not None
        noises.append(int(one.module.noise))
    assert noises[1] - noises[0] == 2**40


def test_workers_draw_other_noise_each_and_the_same_batches() -> None:
    class Second(Alone):
        rank = 1

    drawn = []
    for workers in (Alone(), Second()):
        one = engine_of(Problem(), workers=workers)
        drawn.append((torch.rand(3), one.random.random(3)))
        one.close()
    assert not torch.equal(drawn[0][0], drawn[1][0])
    assert np.array_equal(drawn[0][1], drawn[1][1])  # what they draw together is the same


@pytest.mark.parametrize("is_broken", [False, True], ids=["closed", "broken"])
def test_torchs_random_numbers_and_threads_are_given_back(is_broken: bool) -> None:
    torch.manual_seed(99)
    before, n_threads = torch.get_rng_state(), torch.get_num_threads()
    job = Problem().job(n_threads=n_threads + 1)
    if is_broken:
        arrays = {name: array for name, array in job.network.arrays.items() if name != "intercept"}
        with pytest.raises(KeyError):
            TorchEngine(replace(job, network=replace(job.network, arrays=arrays)))
    else:
        one = TorchEngine(job)
        assert torch.get_num_threads() == n_threads + 1
        assert not torch.equal(torch.get_rng_state(), before)
        one.close()
    assert torch.get_num_threads() == n_threads
    assert torch.equal(torch.get_rng_state(), before)


def test_one_expert_needs_no_dial() -> None:
    assert engine_of(Problem(n_experts=1), additivity=0.9).dial is None
    assert engine_of(Problem(n_experts=2), additivity=0.9).dial is not None
    assert engine_of(Problem(n_experts=2)).dial is None


def test_an_offset_is_added_to_the_score() -> None:
    problem = Problem()
    rows = problem.rows()
    shifted = replace(rows, target=rows.target + 5, base=np.full((N_ROWS, 1), 5.0))
    torch.testing.assert_close(engine_of(problem).step(tensors(rows)), engine_of(problem).step(tensors(shifted)))


def test_a_snapshot_brings_the_weights_back() -> None:
    one = engine_of(Problem(), batch_size=16)
    snapshot = one.snapshot()
    loss = one.train_epoch(lambda _: 0.05)
    assert not np.array_equal(one.snapshot()["expert_weight"], snapshot["expert_weight"])
    one.restore(snapshot)
    assert np.array_equal(one.snapshot()["expert_weight"], snapshot["expert_weight"])
    assert one.train_epoch(lambda _: 0.0) == pytest.approx(loss, rel=0.5)


def test_a_snapshot_stays_as_it_was_while_the_engine_goes_on() -> None:
    one = engine_of(Problem(), batch_size=16)
    given = {name: array.copy() for name, array in one.given.arrays.items()}
    snapshot = one.snapshot()
    kept = {name: array.copy() for name, array in snapshot.items()}
    one.train_epoch(lambda _: 0.05)
    assert all(np.array_equal(array, kept[name]) for name, array in snapshot.items())
    assert all(np.array_equal(array, given[name]) for name, array in one.given.arrays.items())


@pytest.mark.parametrize("config", [{}, {"additivity": 0.9}, {"averaged_steps": 4}], ids=["plain", "dial", "averaged"])
def test_an_engine_goes_on_from_its_state(config: dict[str, object]) -> None:
    one, other = (engine_of(Problem(dropout=0.2), batch_size=16, **config) for _ in range(2))
    one.train_epoch(lambda _: 0.05)
    state = one.state()
    other.load(replace(state, arrays={name: array.copy() for name, array in state.arrays.items()}))
    assert one.train_epoch(lambda _: 0.01) == other.train_epoch(lambda _: 0.01)
    found = other.snapshot()
    assert all(np.array_equal(array, found[name]) for name, array in one.snapshot().items())


def test_a_state_stays_as_it_was_while_the_engine_goes_on() -> None:
    one = engine_of(Problem(dropout=0.2), batch_size=16, averaged_steps=4, additivity=0.9)
    state = one.state()
    kept = {name: array.copy() for name, array in state.arrays.items()}
    one.train_epoch(lambda _: 0.05)
    assert all(np.array_equal(array, kept[name]) for name, array in state.arrays.items())
    assert not np.array_equal(one.state().arrays["noise"], kept["noise"])
