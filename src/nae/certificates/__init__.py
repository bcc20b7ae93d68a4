"""Proofs about a finished model, from its tables alone, and the search for inputs that break a statement."""

from nae.certificates.attacks import Pair, attack
from nae.certificates.clamped import tables_of
from nae.certificates.proofs import TOLERANCE, Tables

__all__ = ["TOLERANCE", "Pair", "Tables", "attack", "tables_of"]
