"""The contract: every evaluator gives numpy's scores, predictions, contributions and bounds in every case."""

from collections.abc import Iterator
from typing import Any

import pytest

from nae.errors import UserError
from tests.agreement.catalogue import CASES, Case
from tests.agreement.evaluators import EVALUATORS, WITHIN, Evaluator, Room, assert_agrees, expected_answer


def pairs() -> Iterator[Any]:
    """Yield every evaluator with every case; of the quick ones each ninth case is part of the fast suite."""
    for evaluator in EVALUATORS:
        for i, case in enumerate(CASES):
            if case.offset is not None and not evaluator.takes_offset:
                continue
            marks = [] if evaluator.is_quick and i % 9 == 0 else [pytest.mark.slow]
            yield pytest.param(evaluator, case, id=f"{evaluator.name}: {case.name}", marks=marks)


@pytest.mark.parametrize(("evaluator", "case"), list(pairs()))
def test_an_evaluator_agrees_with_numpy(evaluator: Evaluator, case: Case, room: Room) -> None:
    if evaluator.name in case.refused:
        with pytest.raises(UserError, match=case.refused[evaluator.name]):
            evaluator.answer(case, room)
        return
    within = WITHIN[case.model.experts.dtype]
    assert_agrees(evaluator.answer(case, room), expected_answer(case), within=within)
