"""What people ask when a prediction decides about somebody, answered from the tables of a model alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_WHERE = {
    "BinCard": "nae.decisions.scorecards",
    "FeatureChange": "nae.decisions.recourse.results",
    "Outcome": "nae.decisions.outcomes",
    "Reasons": "nae.decisions.reasons",
    "Recourse": "nae.decisions.recourse.results",
    "Relativities": "nae.decisions.scorecards",
    "Scorecard": "nae.decisions.scorecards",
    "SufficientReason": "nae.decisions.sufficient",
    "SufficientReasons": "nae.decisions.sufficient",
    "Way": "nae.decisions.recourse.results",
    "outcomes_of": "nae.decisions.outcomes",
    "read_outcome": "nae.decisions.outcomes",
}

__all__ = [
    "BinCard",
    "FeatureChange",
    "Outcome",
    "Reasons",
    "Recourse",
    "Relativities",
    "Scorecard",
    "SufficientReason",
    "SufficientReasons",
    "Way",
    "outcomes_of",
    "read_outcome",
]

if TYPE_CHECKING:
    from nae.decisions.outcomes import Outcome as Outcome
    from nae.decisions.outcomes import outcomes_of as outcomes_of
    from nae.decisions.outcomes import read_outcome as read_outcome
    from nae.decisions.reasons import Reasons as Reasons
    from nae.decisions.recourse.results import FeatureChange as FeatureChange
    from nae.decisions.recourse.results import Recourse as Recourse
    from nae.decisions.recourse.results import Way as Way
    from nae.decisions.scorecards import BinCard as BinCard
    from nae.decisions.scorecards import Relativities as Relativities
    from nae.decisions.scorecards import Scorecard as Scorecard
    from nae.decisions.sufficient import SufficientReason as SufficientReason
    from nae.decisions.sufficient import SufficientReasons as SufficientReasons


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'nae.decisions' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
