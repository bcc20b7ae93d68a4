"""Proven ranges of the score when only some features are known: intervals of tables, and branch and bound."""

from nae.ranges.climbing import climb, row_at, scores
from nae.ranges.domains import Domain, among, between, halves_of, whole
from nae.ranges.near import Span, bounds_near
from nae.ranges.problem import Problem
from nae.ranges.search import Boxes

__all__ = [
    "Boxes",
    "Domain",
    "Problem",
    "Span",
    "among",
    "between",
    "bounds_near",
    "climb",
    "halves_of",
    "row_at",
    "scores",
    "whole",
]
