"""What people ask when a prediction decides about somebody, answered from the tables of a model alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_WHERE = {
    "BinCard": "nae.decisions.scorecards",
    "Outcome": "nae.decisions.outcomes",
    "Relativities": "nae.decisions.scorecards",
    "Scorecard": "nae.decisions.scorecards",
    "read_outcome": "nae.decisions.outcomes",
}

__all__ = ["BinCard", "Outcome", "Relativities", "Scorecard", "read_outcome"]

if TYPE_CHECKING:
    from nae.decisions.outcomes import Outcome as Outcome
    from nae.decisions.outcomes import read_outcome as read_outcome
    from nae.decisions.scorecards import BinCard as BinCard
    from nae.decisions.scorecards import Relativities as Relativities
    from nae.decisions.scorecards import Scorecard as Scorecard


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'nae.decisions' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
