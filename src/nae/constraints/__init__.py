"""Constraints: what a fit is asked to promise, and the forms that make the network keep it."""

from nae.constraints.constraints import Constraints, Score
from nae.constraints.forms import find_leaders, make_forms, needs_logits
from nae.constraints.levels import read_orders
from nae.constraints.reading import Asked, read_constraints
from nae.constraints.smoothness import make_roughness, read_smoothness

__all__ = [
    "Asked",
    "Constraints",
    "Score",
    "find_leaders",
    "make_forms",
    "make_roughness",
    "needs_logits",
    "read_constraints",
    "read_orders",
    "read_smoothness",
]
