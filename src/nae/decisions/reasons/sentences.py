"""Write reasons in sentences: what each one is, and whether its place can be relied on."""

from typing import TYPE_CHECKING

import numpy as np

from nae._words import counted
from nae.decisions.reasons.margins import TESTS
from nae.explanation.local import shown

if TYPE_CHECKING:
    from nae.decisions.reasons.reasons import Reasons

__all__ = ["header", "remark", "sentence", "unnamed_note"]

_PLAIN = "{feature} is {value}: {difference} towards {outcome}."
_SPLIT = _PLAIN[:-1] + " ({own} by its own value, {context} by the other features)."
_NOISE, _CONTEXT = TESTS.index("noise"), TESTS.index("context")
_Clause = tuple[bool, str] | None  # whether the place holds, and the words for it; None for a test that was not made


def header(reasons: "Reasons", row: int) -> str:
    """Return what the prediction is, and that of the reference."""
    own, other = (_prediction(reasons, float(part[row])) for part in (reasons.prediction, reasons.reference_prediction))
    return f"Row {reasons.rows[row] + 1}: the {reasons.measure} is {own}; for {reasons.reference} it is {other}."


def sentence(reasons: "Reasons", row: int, at: int) -> str:
    """Return a reason in the words of its feature."""
    feature = int(reasons.features[row, at])
    words = reasons.wording.of(reasons.feature_names[feature])
    value = shown(reasons.columns[feature][row : row + 1], digits=6)[0]
    context = float(reasons.context[row, feature])
    is_seen = abs(context) > 5e-3 * abs(float(reasons.differences[row, feature]))
    has_context = is_seen and float(_difference(reasons, context)) != 0
    form = words.sentence or reasons.wording.sentence or (_SPLIT if has_context else _PLAIN)
    return form.format(
        feature=words.name,
        value=reasons.wording.missing if value is None else words.value(value),
        difference=_difference(reasons, float(reasons.differences[row, feature]), is_long=True),
        own=_difference(reasons, float(reasons.own[row, feature])),
        context=_difference(reasons, context),
        outcome=reasons.wording.outcome(reasons.outcome),
        reference=reasons.reference,
        rank=at + 1,
    )


def remark(reasons: "Reasons", row: int, at: int) -> str:
    """Return what the place of a reason survives, and what can change it."""
    if reasons.tied[row, at]:
        return f"It is tied with {_next(reasons, row, at)}, so their order means nothing."
    tests = [_members(reasons, row, at), _noise(reasons, row, at), _context(reasons, row, at)]
    holds = [words for is_kept, words in filter(None, tests) if is_kept]
    fails = [words for is_kept, words in filter(None, tests) if not is_kept]
    text = "; ".join([f"its place holds {_all_of(holds)}"] * bool(holds) + fails)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def unnamed_note(reasons: "Reasons", row: int) -> list[str]:
    """Return how many features would be reasons but must not be named, as a list of at most one line."""
    n = len(reasons.unnamed(row))
    verb = "counts" if n == 1 else "count"
    return [f"  {counted(n, 'feature')} that {verb} as much must not be named."] if n else []


def _all_of(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _members(reasons: "Reasons", row: int, at: int) -> _Clause:
    n, every = int(reasons.agreeing[row, at]), reasons.n_members
    if every == 1:
        return None
    return (
        (True, f"in all {every} members")
        if n == every
        else (False, f"{every - n} of {every} members {'changes' if every - n == 1 else 'change'} it")
    )


def _noise(reasons: "Reasons", row: int, at: int) -> _Clause:
    margin = float(reasons.places[row, at, _NOISE])
    if np.isnan(margin):
        return None
    if margin > 0:
        return True, "for all values within the tolerance"
    if reasons.found[row, at] <= 0:
        return False, "values within the tolerance change it"
    return False, "values within the tolerance may change it"


def _context(reasons: "Reasons", row: int, at: int) -> _Clause:
    if reasons.places[row, at, _CONTEXT] > 0:
        return True, "in any context"
    if reasons.listed[row, at, _CONTEXT] > 0:
        return False, "another context may change it, but not remove it"
    return False, "another context may change it"


def _next(reasons: "Reasons", row: int, at: int) -> str:
    """Return the name of the feature that follows a reason, listed or not."""
    behind = at + 1
    order = reasons.ranked(row)
    return reasons.wording.of(reasons.feature_names[order[behind]]).name if behind < len(order) else "nothing"


def _difference(reasons: "Reasons", value: float, *, is_long: bool = False) -> str:
    if reasons.unit == "probability":
        return f"{100 * value + 0.0:+.1f}{' percentage points' if is_long else ''}"
    return f"{value + 0.0:+.3g}"


def _prediction(reasons: "Reasons", value: float) -> str:
    return f"{100 * value:.1f} %" if reasons.classes else f"{value:.4g}"
