"""Sufficient reasons: the features that decide alone, whatever all others are."""

from nae.decisions.sufficient.finding import find_sufficient
from nae.decisions.sufficient.results import SufficientReason, SufficientReasons

__all__ = ["SufficientReason", "SufficientReasons", "find_sufficient"]
