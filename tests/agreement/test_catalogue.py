"""The catalogue is as wide as it says, its rows visit every cell, and its contract can be broken."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from nae.encoding import Number
from nae.links import LINKS
from nae.tables.gates import GATES
from tests.agreement.catalogue import CASES, KINDS, REFUSED, ROUTES, TYPES, Case, find
from tests.agreement.evaluators import EVALUATORS, NAMES, WITHIN, assert_agrees, expected_answer

AXES = {"gate": GATES, "route": tuple(ROUTES), "link": tuple(LINKS), "type": tuple(TYPES), "members": (1, 3)}


def axes_of(case: Case) -> dict[str, object]:
    """Return where a combined case stands on every axis."""
    model = case.model
    gate, route, *_ = case.name.removesuffix(f", {model.experts.dtype}").split(", ")
    assert gate == f"{model.gate.kind} gate"
    assert (model.n_experts == 1) == (route == "one expert")
    stands = (model.gate.kind, route, model.link.name, str(model.experts.dtype), model.n_members)
    return dict(zip(AXES, stands, strict=True))


def combined() -> Iterator[Case]:
    starts = tuple(f"{gate} gate, " for gate in GATES)
    yield from (case for case in CASES if case.name.startswith(starts))


def test_every_two_choices_meet() -> None:
    found = [axes_of(case) for case in combined()]
    for one, other in combinations(AXES, 2):
        met = {(case[one], case[other]) for case in found}
        assert met == set(product(AXES[one], AXES[other])), f"{one} and {other}"


def test_every_gate_meets_every_routing_and_type() -> None:
    found = [tuple(axes_of(case)[name] for name in ("gate", "route", "type")) for case in combined()]
    assert sorted(found) == sorted(product(GATES, ROUTES, TYPES))


def test_names_tell_cases_apart() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert find(CASES[3].name) is CASES[3]


@pytest.mark.parametrize("case", list(combined())[:2], ids=lambda case: case.name)
def test_rows_visit_every_slot_and_between_all_knots(case: Case) -> None:
    schema = case.model.schema
    cells = case.model.cells(case.table)
    assert schema.features == KINDS
    for i, feature in enumerate(schema.features):
        slots = set(range(schema.n_slots)[schema.slots(i)])
        if isinstance(feature, Number):
            slots.remove(max(slots))  # nothing makes a number unseen
            between = cells.slot[cells.fraction[:, i] > 0, i] - schema.offsets[i]
            assert set(between) == set(range(len(feature.knots) - 1))
        assert set(cells.slot[:, i]) == slots


def test_refusals_are_of_evaluators_there_are() -> None:
    names = {evaluator.name for evaluator in EVALUATORS}
    assert all(set(refused) <= names and refused for _, refused in REFUSED.values())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_a_difference_is_noticed(name: str, dtype: str) -> None:
    expected = expected_answer(find(f"additive gate, softmax, {'identity' if dtype == 'float64' else 'log'}, {dtype}"))
    within = WITHIN[np.dtype(dtype)]
    values = getattr(expected, name).copy()
    values[-1] += 3 * within * np.abs(values).max()
    with pytest.raises(AssertionError, match=f"{name} differs"):
        assert_agrees(replace(expected, **{name: values}), expected, within=within)
