"""Proofs about finished models, from their tables alone, and the search for inputs that break a statement."""

from nae.certificates.attacks import Pair, attack
from nae.certificates.changes import Changes
from nae.certificates.clamped import tables_of
from nae.certificates.farthest import Found, farthest
from nae.certificates.merged import alike
from nae.certificates.proofs import TOLERANCE, Tables

__all__ = ["TOLERANCE", "Changes", "Found", "Pair", "Tables", "alike", "attack", "farthest", "tables_of"]
