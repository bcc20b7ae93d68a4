"""The search for a value of a number at which the score is above the straight line between two other values."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates.attacks import drawn_rows, most_rows
from nae.certificates.chords import above_chords
from nae.certificates.proofs import Tables
from nae.certificates.slots import SlotRows

__all__ = ["Bend", "find_bend"]

_STARTS = 3


@dataclass(frozen=True, eq=False)
class Bend:
    """Three rows as slots that differ in one number, and by how much the middle one is above (below) the chord."""

    rows: IntArray  # (3, feature), from left to right
    shares: Array  # (3,), what each score counts in the chord; 0 for the middle one
    gap: float


@dataclass(frozen=True, eq=False)
class _Search:
    scorer: SlotRows
    feature: int
    sign: int
    knots: IntArray
    places: Array

    def bend(self, row: IntArray, hidden: Array) -> Bend:
        """Return the best three values of the number, all else as in a row."""
        rows, moved = self.scorer.moved(row, hidden, self.feature, self.knots)
        rise = above_chords(self.places, self._scores(rows, moved))
        at = [rise.left, rise.middle, rise.right]
        left, middle, right = self.places[at]
        share = (middle - left) / (right - left) if right > left else 0.0
        return Bend(rows[at], np.array([1 - share, 0.0, share]), rise.gap)

    def improved(self, bend: Bend, i: int, slots: IntArray) -> Bend:
        """Return the bend after another feature has taken its best slot in all three rows."""
        gaps: Array = np.zeros(len(slots))
        hidden = self.scorer.hidden(bend.rows)
        moved = [self.scorer.moved(*pair, i, slots) for pair in zip(bend.rows, hidden, strict=True)]
        for weight, pair in zip(np.array([0.0, 1.0, 0.0]) - bend.shares, moved, strict=True):
            gaps += weight * self._scores(*pair)
        best = int(gaps.argmax())
        if gaps[best] <= bend.gap:
            return bend
        return Bend(np.stack([rows[best] for rows, _ in moved]), bend.shares, float(gaps[best]))

    def climb(self, bend: Bend, options: tuple[IntArray, ...], order: IntArray, n_rows: int) -> Bend:
        """Return the bend after every feature in turn has taken its best slots, until nothing helps or rows run out."""
        best, n_left = bend, n_rows
        while n_left > 0:
            before = best.gap
            for i in order:
                if i != self.feature and n_left > 0:
                    best = self.improved(best, int(i), options[i])
                    n_left -= 3 * len(options[i])
            row = best.rows[0]
            again = self.bend(row, self.scorer.hidden(row[None])[0])
            best = again if again.gap > best.gap else best
            n_left -= len(self.knots)
            if best.gap <= before:
                break
        return best

    def _scores(self, rows: IntArray, hidden: Array) -> Array:
        return np.asarray(self.sign * self.scorer.contributions(rows, hidden).sum(axis=1))


def find_bend(tables: Tables, feature: int, sign: int, *, seed: int = 0) -> Bend:
    """Return the largest rise above a chord (``sign`` 1), or fall below one (-1), that a search finds.

    Parameters
    ----------
    tables
        The model.
    feature
        The number in which alone the three rows differ.
    sign
        1 for a score that should be convex; -1 for one that should be concave.
    seed
        Random seed.
    """
    random, knots = np.random.default_rng(seed), tables.knots(feature)
    scorer = SlotRows.of(tables, np.arange(tables.model.n_features))
    search = _Search(scorer, feature, sign, knots, tables.places(feature))
    rows = drawn_rows(tables, random, len(knots))
    found = [search.bend(*pair) for pair in zip(rows, scorer.hidden(rows), strict=True)]
    starts = sorted(found, key=lambda bend: -bend.gap)[:_STARTS]
    order = random.permutation(tables.model.n_features)
    climbed = [search.climb(bend, tables.reachable, order, most_rows(tables) // _STARTS) for bend in starts]
    return max(climbed, key=lambda bend: bend.gap)
