"""The search for two inputs that break a statement: random rows of slots, then the best slot of one feature at a time.

Every row stands on slots: knots, levels, *missing*, *unseen*. Scores are computed by the model itself, in double
precision. A pair that is found is a fact; that none is found proves nothing.
"""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.certificates.proofs import Tables
from nae.encoding.cells import Cells

__all__ = ["Pair", "attack"]

_BUDGET = 1e7  # experts and weights that either half of a search may compute
_STARTS = 3


@dataclass(frozen=True, eq=False)
class Pair:
    """Two rows as slots, (feature,) each, and by how much the first one's value exceeds that of the second."""

    high: IntArray
    low: IntArray
    gap: float
    target: int | None  # the feature whose contribution is compared; None for the score


@dataclass(frozen=True, eq=False)
class _Search:
    """What is compared, and which slots every feature may take."""

    tables: Tables
    feature: int
    target: int | None
    options: tuple[IntArray, ...]
    allowed: BoolArray | None  # (slot of the high row, slot of the low row) of the feature; None for all
    by_others: bool  # whether the other features differ between the rows, and not the feature

    def values(self, rows: IntArray) -> Array:
        found = contributions(self.tables, rows)
        return np.asarray(found.sum(axis=1) if self.target is None else found[:, self.target])

    def best_pair(self, high: Array, low: Array) -> tuple[int, int]:
        """Return the positions of the best pair among the values of two rows of options."""
        gaps = high[:, None] - low[None]
        if self.allowed is not None:
            gaps = np.where(self.allowed, gaps, -np.inf)
        at = np.unravel_index(gaps.argmax(), gaps.shape)
        return int(at[0]), int(at[1])

    def starts(self, rows: IntArray, values: Array) -> list[Pair]:
        """Return the best pairs among rows (context, slot of the feature, feature) with values (context, slot)."""
        found = []
        if self.by_others:
            for at in range(values.shape[1]):
                high, low = rows[values[:, at].argmax(), at], rows[values[:, at].argmin(), at]
                found.append(Pair(high, low, float(np.ptp(values[:, at])), self.target))
        else:
            for context, own in zip(rows, values, strict=True):
                first, second = self.best_pair(own, own)
                found.append(Pair(context[first], context[second], float(own[first] - own[second]), self.target))
        return sorted(found, key=lambda pair: -pair.gap)[:_STARTS]

    def climb(self, pair: Pair, order: IntArray, n_rows: int) -> Pair:
        """Return the pair after every feature in turn has taken its best slots, until nothing helps or rows run out."""
        best, n_left = pair, n_rows
        while n_left > 0:
            before = best.gap
            for i in order:
                n_left -= 2 * len(self.options[i])
                best = self._improved(best, int(i))
                if n_left <= 0:
                    break
            if best.gap <= before:
                break
        return best

    def _improved(self, pair: Pair, i: int) -> Pair:
        slots = self.options[i]
        rows = np.repeat(np.stack([pair.high, pair.low]), len(slots), axis=0)
        rows[:, i] = np.tile(slots, 2)
        high, low = self.values(rows).reshape(2, -1)
        if (i == self.feature) == self.by_others:  # both rows have the same slot
            first = second = int((high - low).argmax())
        elif i == self.feature:
            first, second = self.best_pair(high, low)
        else:
            first, second = int(high.argmax()), int(low.argmin())
        gap = float(high[first] - low[second])
        if gap <= pair.gap:
            return pair
        return Pair(rows[first], rows[len(slots) + second], gap, self.target)


def contributions(tables: Tables, rows: IntArray) -> Array:
    """Return the contributions to the score of rows of slots, (row, feature)."""
    out = np.empty(rows.shape)
    for part, cells in tables.model.iterate(Cells(rows, np.zeros(rows.shape))):
        out[part] = tables.model.contribute(cells) @ tables.direction
    return out


def attack(
    tables: Tables, feature: int, *, sign: int = 0, of_others: bool = False, by_others: bool = False, seed: int = 0
) -> Pair:
    """Return the pair of rows with the largest gap that a search finds.

    Parameters
    ----------
    tables
        The model.
    feature
        The feature in which alone the rows differ.
    sign
        1: the first row's value is smaller; -1: it is larger. Missing and unseen are outside the order. 0: any values.
    of_others
        Compare the contribution of another feature, the one that moves most, instead of the score.
    by_others
        The rows differ in all other features instead, and the contribution of the feature is compared.
    seed
        Random seed.
    """
    random, model = np.random.default_rng(seed), tables.model
    options = list(tables.reachable)
    allowed = None
    if sign:
        options[feature] = tables.knots(feature)
        at = np.arange(len(options[feature]))
        allowed = sign * at[:, None] < sign * at[None]
    own = options[feature]
    per_row = model.n_features * model.n_experts * model.n_members * (1 + model.n_outputs)
    n_contexts = int(np.clip(_BUDGET / per_row / len(own), 8, 64))
    contexts = np.stack([random.choice(slots, n_contexts) for slots in options], axis=1)
    rows = np.repeat(contexts[:, None], len(own), axis=1)  # (context, slot of the feature, feature)
    rows[:, :, feature] = own
    found = contributions(tables, rows.reshape(-1, model.n_features)).reshape(rows.shape)
    target = feature if by_others else None
    if of_others:
        moved = np.ptp(found, axis=1).max(axis=0)
        moved[feature] = -1.0
        target = int(moved.argmax())
    search = _Search(tables, feature, target, tuple(options), allowed, by_others)
    values = found.sum(axis=-1) if target is None else found[:, :, target]
    order = random.permutation(model.n_features)
    n_rows = int(_BUDGET / per_row / _STARTS)
    climbed = [search.climb(pair, order, n_rows) for pair in search.starts(rows, values)]
    return max(climbed, key=lambda pair: pair.gap)
