"""How sure a prediction is: intervals of the target and sets of classes, measured on rows that members did not see."""

from nae.uncertainty.averaging import MemberScores
from nae.uncertainty.calibrating import calibrated
from nae.uncertainty.intervals import PredictionInterval, predict_interval
from nae.uncertainty.levels import known_by
from nae.uncertainty.outcomes import Outcomes
from nae.uncertainty.remembering import remember_residuals
from nae.uncertainty.sets import PredictionSet, predict_set
from nae.uncertainty.source import Basis

__all__ = [
    "Basis",
    "MemberScores",
    "Outcomes",
    "PredictionInterval",
    "PredictionSet",
    "calibrated",
    "known_by",
    "predict_interval",
    "predict_set",
    "remember_residuals",
]
