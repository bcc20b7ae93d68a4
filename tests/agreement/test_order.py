"""Quantiles that are as near as a fit lets them come do not cross in any evaluator, whatever it rounds."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nae.training.ordering import least_apart
from tests.agreement.catalogue import TYPES, Case, case_of
from tests.agreement.evaluators import EVALUATORS, Evaluator, Room


def close_case(dtype: str, *, room: float = 0.0) -> Case:
    """Return a model whose two outputs are as near in every row as their order allows, and by ``room`` less.

    They have the same experts, centred differently, so that nothing but the intercepts tells them apart.
    """
    case = case_of("outputs as near as can be", dtype, n_outputs=2, n_experts=6, n_members=3, size=10.0)
    experts = case.model.experts.copy()
    shift = np.random.default_rng(0).normal(size=case.model.n_features)
    for i, by in enumerate(shift):
        slots = case.model.schema.slots(i)
        experts[slots, :, 1] = experts[slots, :, 0] + by
    model = replace(case.model, experts=experts.astype(TYPES[dtype]))
    near = model.intercept - [0.0, float(least_apart(model)[0])]
    return replace(case, model=replace(model, intercept=near - [0.0, room]))


def pairs() -> Iterator[Any]:
    for evaluator in EVALUATORS:
        for dtype in TYPES:
            marks = [] if evaluator.is_quick and dtype == "float32" else [pytest.mark.slow]
            yield pytest.param(evaluator, dtype, id=f"{evaluator.name}: {dtype}", marks=marks)


@pytest.mark.parametrize(("evaluator", "dtype"), list(pairs()))
def test_near_quantiles_do_not_cross(evaluator: Evaluator, dtype: str, room: Room) -> None:
    found = evaluator.answer(close_case(dtype), room)
    for values in (found.score, found.prediction):
        assert (np.diff(values, axis=1) >= 0).all()


def test_quantiles_that_are_nearer_would_cross() -> None:
    model = close_case("float32").model
    room = 1.1 * float(np.diff(model.decision_function(close_case("float32").table), axis=1).max())
    assert room < 1e-3 * float(np.abs(model.experts).max())
    near = close_case("float32", room=room)
    assert (np.diff(near.model.decision_function(near.table), axis=1) < 0).any()
