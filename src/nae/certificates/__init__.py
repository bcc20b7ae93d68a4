"""Proofs about finished models, from their tables alone, and the search for inputs that break a statement."""

from nae.certificates.attacks import Pair, attack
from nae.certificates.bends import Bend, find_bend
from nae.certificates.changes import Changes
from nae.certificates.clamped import tables_of
from nae.certificates.farthest import Found, farthest
from nae.certificates.merged import alike
from nae.certificates.order import Crossing, Neighbours
from nae.certificates.proofs import TOLERANCE, Tables

__all__ = [
    "TOLERANCE",
    "Bend",
    "Changes",
    "Crossing",
    "Found",
    "Neighbours",
    "Pair",
    "Tables",
    "alike",
    "attack",
    "farthest",
    "find_bend",
    "tables_of",
]
