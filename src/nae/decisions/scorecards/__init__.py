"""Scorecards and relativities: a model as a table of points or factors."""

from nae.decisions.scorecards.card import BinCard, Relativities, Scorecard
from nae.decisions.scorecards.making import Reference, relativities, scorecard
from nae.decisions.scorecards.parts import CardBin, CardFeature, CardLoss, Measured

__all__ = [
    "BinCard",
    "CardBin",
    "CardFeature",
    "CardLoss",
    "Measured",
    "Reference",
    "Relativities",
    "Scorecard",
    "relativities",
    "scorecard",
]
