"""A model keeps a statement by construction and is proven; one violation, planted anywhere, is found and repeatable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae.explanation import Certificate
from nae.tables import TableModel
from nae.tables.gates import GATES
from tests.certificates.planted import monotone_model, own_terms
from tests.certificates.test_curves import convex_model
from tests.certificates.test_order import ordered_model

Random = np.random.Generator
Made = tuple[TableModel, dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """How a model keeps a statement, and how it is made to break it: by a size from 1 up, at a random place."""

    make: Callable[[Random, str], Made]
    plant: Callable[[TableModel, Random, float], None]
    gates: tuple[str, ...] = tuple(GATES)


def make_capped(random: Random, gate: str) -> Made:
    model = monotone_model(random, gate=gate)
    return model, {"max_effect": {"town": model.certify(max_effect={"town": 0.0})[0].bound}}


def make_isolated(random: Random, gate: str) -> Made:
    model = monotone_model(random, gate=gate)
    own_terms(model, 2)[:] = 0.3
    return model, {"isolated": ["town"]}


def make_unchanged(random: Random, gate: str) -> Made:
    model = monotone_model(random, gate=gate)
    slots = model.schema.slots(2)
    model.experts[slots] = model.experts[slots][:, :1]
    return model, {"unchanged": ["town"]}


def plant_fall(model: TableModel, random: Random, size: float) -> None:
    model.experts[random.integers(1, 6)] -= size


def plant_effect(model: TableModel, random: Random, size: float) -> None:
    limit = model.certify(max_effect={"town": 0.0})[0].bound
    model.experts[random.choice(np.arange(*model.schema.slots(2).indices(99)))] += 2 * size * limit


def plant_terms(model: TableModel, random: Random, size: float) -> None:
    own = own_terms(model, 2)
    at = random.integers(len(own))
    own[at] += 2 * size * random.standard_normal(own[at].shape)


def plant_expert(model: TableModel, random: Random, size: float) -> None:
    slots = model.schema.slots(2)
    model.experts[random.integers(slots.start, slots.stop), random.integers(3)] += size * random.choice([-1, 1])


def plant_knot(model: TableModel, random: Random, size: float) -> None:
    model.experts[random.integers(1, 5)] += 2 * size


def plant_crossing(model: TableModel, random: Random, size: float) -> None:
    lower, slot = random.integers(2), random.choice(np.arange(*model.schema.slots(2).indices(99)))
    model.experts[slot, :, lower] = model.experts[slot, :, lower + 1] + 30 * size


SUMMING = tuple(gate for gate in GATES if gate != "diagonal")
KINDS = {
    "monotone": Kind(lambda random, gate: (monotone_model(random, gate=gate), {"monotone": {"income": 1}}), plant_fall),
    "max effect": Kind(make_capped, plant_effect),
    "isolated": Kind(make_isolated, plant_terms, SUMMING),
    "unchanged": Kind(make_unchanged, plant_expert, SUMMING),
    "curved": Kind(lambda random, gate: (convex_model(random, gate=gate), {"curved": {"age": "convex"}}), plant_knot),
    "ordered": Kind(lambda random, gate: (ordered_model(random, gate=gate), {"ordered": True}), plant_crossing),
}


def violation_of(model: TableModel, one: Certificate) -> float:
    """Return by how much the inputs of a counterexample break a statement, as the model itself computes it."""
    example = one.counterexample
    assert example is not None
    rows = [dict(zip(example.features, values, strict=True)) for values in example.inputs]
    if one.kind in ("isolated", "unchanged"):
        found = model.contributions(rows).values[:, example.features.index(example.of)]
        return float(found[0] - found[1])
    scores = model.decision_function(rows)
    if one.kind == "ordered":
        lower, upper = (model.outputs.index(name) for name in one.output.split(" and "))
        return float(scores[0, lower] - scores[0, upper])
    if one.kind == "curved":
        left, middle, right = (row["age"] for row in rows)
        return float(scores[1] - np.interp(middle, [left, right], scores[[0, 2]]))
    return float(scores[0] - scores[1] - one.limit)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(data=st.data())
def test_a_violation_planted_anywhere_is_found(kind: str, data: st.DataObject) -> None:
    gate = data.draw(st.sampled_from(KINDS[kind].gates))
    random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    model, statement = KINDS[kind].make(random, gate)
    assert model.certify(**statement).all_proven
    KINDS[kind].plant(model, random, data.draw(st.floats(1, 20)))
    found = [one for one in model.certify(**statement).certificates if one.verdict == "refuted"]
    assert found
    for one in found:
        assert one.counterexample is not None
        assert violation_of(model, one) > one.tolerance
        assert violation_of(model, one) == pytest.approx(one.counterexample.violation, abs=1e-9)
