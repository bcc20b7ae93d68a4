"""Reasons for a decision: the features that count most for or against it, and whether their order can be relied on."""

from nae.decisions.reasons.finding import find_reasons
from nae.decisions.reasons.reasons import Reasons
from nae.decisions.reasons.wording import FeatureWording, Wording, read_wording

__all__ = ["FeatureWording", "Reasons", "Wording", "find_reasons", "read_wording"]
