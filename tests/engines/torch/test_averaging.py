"""The running mean of weights, and the loop that keeps it instead of them."""

import numpy as np
import pytest
import torch
from torch.nn import Parameter

from nae.engines.torch import TorchEngine
from nae.engines.torch.averaging import RunningMean
from tests.configs import training_config
from tests.training.problems import N_ROWS, Problem


def walk(mean: RunningMean, weight: Parameter, values: np.ndarray, *, start: int = 0) -> None:
    for n_steps, value in enumerate(values, start=start + 1):
        weight.data.fill_(float(value))
        mean.update(n_steps)


def found(mean: RunningMean) -> float:
    return float(mean.tensors()["0"][0])


def test_weights_that_stay_are_their_own_mean() -> None:
    weight = Parameter(torch.full((3,), 7.0))
    mean = RunningMean([weight], horizon=5)
    walk(mean, weight, np.full(40, 7.0))
    assert found(mean) == pytest.approx(7.0)


def test_noise_of_single_steps_averages_out() -> None:
    weight = Parameter(torch.zeros(3))
    mean = RunningMean([weight], horizon=32)
    walk(mean, weight, np.random.default_rng(0).normal(size=2000))
    assert abs(found(mean)) < 0.3  # a mean over 32 has a standard deviation of 1 / 8


def test_a_young_mean_looks_back_a_few_steps_only() -> None:
    weight = Parameter(torch.full((3,), 100.0))
    mean = RunningMean([weight], horizon=1000)
    walk(mean, weight, np.zeros(20))
    assert 0 <= found(mean) < 0.01  # a plain mean would still be near 5


def test_means_take_the_weights_place_and_give_it_back() -> None:
    weight = Parameter(torch.zeros(3))
    mean = RunningMean([weight], horizon=4)
    walk(mean, weight, np.arange(1.0, 9.0))
    address, expected = weight.data_ptr(), found(mean)
    with mean.in_place():
        assert weight.tolist() == [expected] * 3
    assert expected < 8
    assert weight.tolist() == [8.0] * 3
    assert weight.data_ptr() == address  # by which a captured graph knows the weights
    assert found(mean) == expected
    mean.restart()
    assert found(mean) == 8.0


def test_a_kept_mean_goes_on_alike() -> None:
    weights = [Parameter(torch.zeros(3)) for _ in range(2)]
    first, second = (RunningMean([each], horizon=8) for each in weights)
    walk(first, weights[0], np.arange(12.0))
    second.load(first.tensors())
    for mean, weight in ((first, weights[0]), (second, weights[1])):
        walk(mean, weight, np.array([3.0, 5.0]), start=12)
    assert found(first) == found(second)


def test_an_engine_judges_and_keeps_the_mean() -> None:
    problem = Problem()
    rows = problem.folded(np.arange(N_ROWS) % 4)
    engine, plain = (
        TorchEngine(
            problem.job(
                rows,
                config=training_config(batch_size=16, warmup_steps=1, learning_rate=0.05, averaged_steps=n_steps),
            )
        )
        for n_steps in (8, None)
    )
    for one in (engine, plain):
        one.train_epoch(lambda _: 0.05)
    judged = engine.judge().loss
    assert judged != plain.judge().loss
    trained = plain.module.state_dict()
    assert all(torch.equal(tensor, trained[name]) for name, tensor in engine.module.state_dict().items())
    snapshot, kept = engine.snapshot(), engine.network.arrays
    assert all(np.array_equal(array, kept[name]) for name, array in snapshot.items())
    assert not np.array_equal(kept["expert_weight"], plain.network.arrays["expert_weight"])
    engine.restore(snapshot)
    assert engine.judge().loss == judged
    assert all(np.array_equal(tensor, snapshot[name]) for name, tensor in engine.module.state_dict().items())
