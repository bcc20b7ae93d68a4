"""Changes, numbers and targets in words."""

from typing import TYPE_CHECKING, Any

from nae.decisions.reasons.wording import Wording

if TYPE_CHECKING:
    from nae.decisions.recourse.goals import Goal
    from nae.decisions.recourse.results import FeatureChange

__all__ = ["change_text", "number_text", "prediction_text", "target_text", "value_text", "what_text"]


def change_text(change: "FeatureChange", wording: Wording) -> str:
    """Return a change in words: raise savings from 1,200 to 3,000."""
    old, new, words = change.old, change.new, wording.of(change.feature)
    before, after = words.value(value_text(old)), words.value(value_text(new, 12))
    if new is None:
        return f"leave {words.name} out (it is {before})"
    if old is None:
        return f"set {words.name}, which is missing, to {after}"
    is_number = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (old, new))
    verb = ("raise" if new > old else "lower") if is_number else "change"
    return f"{verb} {words.name} from {before} to {after}"


def value_text(value: Any, digits: int = 6) -> str:
    """Return a value of a feature as a sentence shows it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "missing" if value is None else str(value)
    return number_text(float(value), digits)


def number_text(value: float, digits: int = 3) -> str:
    """Return a number with thousands apart: 1,200."""
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.10g}" if "e" in text else _with_thousands(text)


def _with_thousands(text: str) -> str:
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}" if not whole.startswith("-0") else text


def prediction_text(value: float, *, is_probability: bool) -> str:
    """Return a prediction as a sentence shows it: 41 %, or a number."""
    if not is_probability:
        return number_text(value, 4)
    percent = 100 * value
    decimals = 0 if 1 <= percent <= 99 else 2
    return f"{percent:.{decimals}f} %"


def what_text(goal: "Goal", wording: Wording) -> str:
    """Return what a goal is about."""
    if goal.model.classes:
        return f"probability of {wording.outcome(goal.name)}"
    return "prediction" if goal.model.n_outputs == 1 else f"prediction of {goal.name}"


def target_text(goal: "Goal", wording: Wording) -> str:
    """Return a goal in words."""
    if goal.is_choice:
        return f"the model chooses {wording.outcome(goal.name)}"
    shown = [prediction_text(end, is_probability=bool(goal.model.classes)) for end in (goal.low, goal.high)]
    limits = [f"at least {shown[0]}"] if goal.low > -float("inf") else []
    limits += [f"at most {shown[1]}"] if goal.high < float("inf") else []
    return f"the {what_text(goal, wording)} is {' and '.join(limits)}"
