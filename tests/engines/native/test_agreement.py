"""Torch is the reference: the native core finds the same gradients, takes the same steps and judges alike."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from nae.native import INSTRUCTIONS, best_instructions, is_here, reason
from nae.network import GATES
from tests.engines.native.problems import (
    NativeEngine,
    Problem,
    TorchEngine,
    assert_same,
    native_gradients,
    torch_gradients,
)
from tests.engines.native.shapes import PENALTIES, problems

HERE = INSTRUCTIONS[1 : INSTRUCTIONS.index(best_instructions()) + 1] if is_here() else ()
"""The sets of instructions that the processor has."""
pytestmark = pytest.mark.skipif(not is_here(), reason=reason())

EXTREMES = {
    "300 features": Problem(
        n_features=300, n_rows=40, n_knots=3, network={"gate": "low-rank", "n_experts": 4, "n_active": 4}
    ),
    "64 experts": Problem(n_features=2, network={"n_experts": 64, "n_active": 64}),
    "100 experts, 30 of them active": Problem(n_features=2, network={"n_experts": 100, "n_active": 30}),
    "200 experts, 150 of them active": Problem(n_features=2, n_rows=30, network={"n_experts": 200, "n_active": 150}),
    "Gumbel noise over 70 experts, 40 of them active": Problem(
        n_features=5, network={"routing": "gumbel", "n_experts": 70, "n_active": 40, "gate": "diagonal"}
    ),
    "one expert that is dropped": Problem(network={"n_experts": 1, "n_active": 1, "expert_dropout": 0.3}),
    "26 classes": Problem(n_outputs=26, loss="cross-entropy", network={"n_experts": 16, "n_active": 16}),
    "five quantiles": Problem(n_outputs=5, loss="quantile", options={"quantile": (0.05, 0.25, 0.5, 0.75, 0.95)}),
    "one feature": Problem(n_features=1),
    "one row in a step": Problem(training={"batch_size": 1}, n_rows=9),
    "one hidden unit": Problem(network={"hidden_dim": 1}),
    "a wide block": Problem(network={"hidden_dim": 150, "n_blocks": 1}),
    "four blocks": Problem(network={"n_blocks": 4, "hidden_dim": 32}),
}


def check_gradients(problem: Problem, *, tolerance: float, instructions: Sequence[str] = ("best",)) -> None:
    one = problem.engine(TorchEngine)
    rows = problem.rows()
    part = next(rows.batches(one.n_batches, one.batch_size, np.random.default_rng(1)))
    wanted_loss, wanted = torch_gradients(one, rows.take(part))
    for name in instructions:
        loss, found = native_gradients(problem.engine(NativeEngine, instructions=name), part)
        assert loss == pytest.approx(wanted_loss, rel=tolerance), name
        assert_same(found, wanted, tolerance=tolerance)


def check_steps(problem: Problem, *, least_steps: int, instructions: Sequence[str] = ("best",)) -> None:
    """Compare steps in double precision: in single, Adam turns the rounding of a gradient near zero into a step."""
    problem = problem.but(is_double=True)
    one, *others = (
        problem.engine(TorchEngine),
        *(problem.engine(NativeEngine, instructions=name) for name in instructions),
    )
    while one.n_steps < least_steps:  # small steps: large ones turn rounding into other choices of experts
        wanted, *losses = [engine.train_epoch(lambda step: 1e-4 * (1 + step % 3)) for engine in (one, *others)]
        assert losses == pytest.approx([wanted] * len(others), rel=1e-6)
    weights, verdict = dict(one.snapshot()), one.judge() if one.is_judged else None
    for other in others:
        assert other.n_steps == one.n_steps
        assert_same(dict(other.snapshot()), weights, tolerance=1e-4)
        if verdict is not None:
            found = other.judge()
            assert found.loss == pytest.approx(verdict.loss, rel=1e-4)
            assert found.standard_error == pytest.approx(verdict.standard_error, rel=1e-4, abs=1e-9)
        assert (other.dial is None) == (one.dial is None)
        if one.dial is not None:
            assert other.additivity() == pytest.approx(one.additivity(), rel=1e-4)
            assert other.dial.strength == pytest.approx(one.dial.strength, rel=1e-4)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_gradients_are_those_of_torch(problem: Problem) -> None:
    check_gradients(problem, tolerance=1e-8 if problem.is_double else in_single(problem))


def in_single(problem: Problem) -> float:
    """Return the tolerance in single precision."""
    # The norm of a few units divides by what rounding leaves of a small deviation, three times in three blocks; a curve
    # that bends sums its sums.
    return 1e-2 if problem.has_forms else 1e-4 if problem.network["hidden_dim"] >= 8 else 1e-3


WIDE = problems(most_features=300, most_experts=64, most_outputs=26, most_hidden=70)


# Torch is asked once about a problem, and every set of instructions is compared with what it finds.
@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=WIDE)
def test_gradients_of_wide_problems_are_those_of_torch(problem: Problem) -> None:
    tolerance = 1e-8 if problem.is_double else in_single(problem)
    check_gradients(problem, tolerance=tolerance, instructions=HERE)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=WIDE)
def test_ten_steps_of_wide_problems_are_those_of_torch(problem: Problem) -> None:
    check_steps(problem, least_steps=10, instructions=HERE)


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("is_double", [False, True], ids=["single", "double"])
def test_gradients_of_extreme_shapes_are_those_of_torch(name: str, is_double: bool) -> None:
    problem = EXTREMES[name]
    problem = problem.but(is_double=is_double, training=PENALTIES | problem.training)
    check_gradients(problem, tolerance=1e-9 if is_double else 1e-4)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_steps_are_those_of_torch(problem: Problem) -> None:
    check_steps(problem, least_steps=4)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("additivity", [None, 0.9])
def test_rows_with_values_that_no_row_trained_are_judged_alike(gate: str, additivity: float | None) -> None:
    problem = Problem(
        n_features=4, n_categories=2, is_double=True, network={"gate": gate}, training={"additivity": additivity}
    )
    rows = problem.rows()
    sizes = np.array([feature.n_slots for feature in problem.schema().features])
    first = np.arange(4) * problem.make_network().n_slots
    rows.cells.slot[:9] = first + sizes - 1  # unseen
    rows.cells.slot[9:20] = first + sizes - 2  # missing, which no row is
    rows.cells.fraction[:20] = 0
    one, other = problem.engines(validation=rows)
    for engine in (one, other):
        engine.train_epoch(lambda _: 0.01)
    assert other.judge().loss == pytest.approx(one.judge().loss, rel=1e-8)
    if additivity:
        assert other.additivity() == pytest.approx(one.additivity(), rel=1e-6)


def test_steps_are_not_those_of_another_rate() -> None:
    one, other = Problem(is_double=True).engines()
    one.train_epoch(lambda _: 0.01)
    other.train_epoch(lambda _: 0.011)
    with pytest.raises(AssertionError):
        assert_same(other.snapshot(), one.snapshot(), tolerance=1e-4)
