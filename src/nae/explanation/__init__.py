"""Explanations as frozen data, computed exactly from the tables of a model; they can be saved as JSON."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_WHERE = {
    "Axis": "nae.explanation.grid",
    "Certificate": "nae.explanation.certificates",
    "Certificates": "nae.explanation.certificates",
    "Change": "nae.explanation.changes",
    "ChangeCertificate": "nae.explanation.changes",
    "Comparison": "nae.explanation.comparison",
    "Counterexample": "nae.explanation.certificates",
    "EffectCap": "nae.explanation.caps",
    "EffectCaps": "nae.explanation.caps",
    "Extreme": "nae.explanation.extremes",
    "Extremes": "nae.explanation.extremes",
    "FeatureShape": "nae.explanation.shapes",
    "GlobalExplanation": "nae.explanation.shapes",
    "InteractionExplanation": "nae.explanation.interaction",
    "InteractionStrength": "nae.explanation.strength",
    "LocalExplanation": "nae.explanation.local",
    "PairStrength": "nae.explanation.strength",
    "PredictionRange": "nae.explanation.ranges",
    "Question": "nae.explanation.questions",
    "Questions": "nae.explanation.questions",
    "RowChange": "nae.explanation.changes",
    "RowChanges": "nae.explanation.changes",
    "compare": "nae.explanation.comparison",
    "gather_statistics": "nae.explanation.statistics",
    "with_statistics": "nae.explanation.statistics",
}

__all__ = [
    "Axis",
    "Certificate",
    "Certificates",
    "Change",
    "ChangeCertificate",
    "Comparison",
    "Counterexample",
    "EffectCap",
    "EffectCaps",
    "Extreme",
    "Extremes",
    "FeatureShape",
    "GlobalExplanation",
    "InteractionExplanation",
    "InteractionStrength",
    "LocalExplanation",
    "PairStrength",
    "PredictionRange",
    "Question",
    "Questions",
    "RowChange",
    "RowChanges",
    "compare",
    "gather_statistics",
    "with_statistics",
]

if TYPE_CHECKING:
    from nae.explanation.caps import EffectCap as EffectCap
    from nae.explanation.caps import EffectCaps as EffectCaps
    from nae.explanation.certificates import Certificate as Certificate
    from nae.explanation.certificates import Certificates as Certificates
    from nae.explanation.certificates import Counterexample as Counterexample
    from nae.explanation.changes import Change as Change
    from nae.explanation.changes import ChangeCertificate as ChangeCertificate
    from nae.explanation.changes import RowChange as RowChange
    from nae.explanation.changes import RowChanges as RowChanges
    from nae.explanation.comparison import Comparison as Comparison
    from nae.explanation.comparison import compare as compare
    from nae.explanation.extremes import Extreme as Extreme
    from nae.explanation.extremes import Extremes as Extremes
    from nae.explanation.grid import Axis as Axis
    from nae.explanation.interaction import InteractionExplanation as InteractionExplanation
    from nae.explanation.local import LocalExplanation as LocalExplanation
    from nae.explanation.questions import Question as Question
    from nae.explanation.questions import Questions as Questions
    from nae.explanation.ranges import PredictionRange as PredictionRange
    from nae.explanation.shapes import FeatureShape as FeatureShape
    from nae.explanation.shapes import GlobalExplanation as GlobalExplanation
    from nae.explanation.statistics import gather_statistics as gather_statistics
    from nae.explanation.statistics import with_statistics as with_statistics
    from nae.explanation.strength import InteractionStrength as InteractionStrength
    from nae.explanation.strength import PairStrength as PairStrength


def __getattr__(name: str) -> Any:
    # Imported lazily, because the tables have methods that call these functions.
    if name not in _WHERE:
        raise AttributeError(f"module 'nae.explanation' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
