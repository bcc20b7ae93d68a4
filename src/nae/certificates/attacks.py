"""The search for two inputs that break a statement: random rows of slots, then the best slot of one feature at a time.

Every row stands on slots: knots, levels, *missing*, *unseen*. A pair that is found is a fact, which the model's own
scores repeat; that none is found proves nothing.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.certificates.proofs import Tables
from nae.certificates.slots import SlotRows

__all__ = ["Pair", "attack", "drawn_rows", "most_rows"]

_BUDGET = 5e7  # experts and weights that either half of a search may compute
_STARTS = 3


@dataclass(frozen=True, eq=False)
class Pair:
    """Two rows as slots, (feature,) each, and by how much the first one's value exceeds that of the second."""

    high: IntArray
    low: IntArray
    gap: float
    target: int | None  # the feature whose contribution is compared; None for the score


@dataclass(frozen=True, eq=False)
class _Moves:
    """The rows in which one feature takes each of its slots."""

    rows: IntArray  # (slot, feature)
    hidden: Array
    values: Array  # (slot,)


@dataclass(frozen=True, eq=False)
class _Search:
    """What is compared, and which slots every feature may take."""

    tables: Tables
    feature: int
    target: int | None
    options: tuple[IntArray, ...]
    allowed: BoolArray | None  # (slot of the high row, slot of the low row) of the feature; None for all
    by_others: bool  # whether the other features differ between the rows, and not the feature

    @cached_property
    def scorer(self) -> SlotRows:
        n_features = self.tables.model.n_features
        return SlotRows.of(self.tables, np.arange(n_features) if self.target is None else np.array([self.target]))

    def moves(self, row: IntArray, hidden: Array, i: int) -> _Moves:
        rows, moved = self.scorer.moved(row, hidden, i, self.options[i])
        return _Moves(rows, moved, self.scorer.contributions(rows, moved).sum(axis=1))

    def best_pair(self, high: Array, low: Array) -> tuple[int, int]:
        """Return the positions of the best pair among the values of two rows of options."""
        gaps = high[:, None] - low[None]
        if self.allowed is not None:
            gaps = np.where(self.allowed, gaps, -np.inf)
        at = np.unravel_index(gaps.argmax(), gaps.shape)
        return int(at[0]), int(at[1])

    def starts(self, contexts: IntArray) -> list[Pair]:
        """Return the best pairs among rows of contexts (context, feature) with the feature at each of its slots."""
        hidden = self.scorer.hidden(contexts)
        tried = [self.moves(*context, self.feature) for context in zip(contexts, hidden, strict=True)]
        if self.by_others:
            values = np.stack([one.values for one in tried])
            ends = [(tried[high], at, tried[low], at) for at, (high, low) in enumerate(_extremes(values))]
        else:
            best = [self.best_pair(one.values, one.values) for one in tried]
            ends = [(one, high, one, low) for one, (high, low) in zip(tried, best, strict=True)]
        found = [
            Pair(one.rows[high], other.rows[low], float(one.values[high] - other.values[low]), self.target)
            for one, high, other, low in ends
        ]
        return sorted(found, key=lambda pair: -pair.gap)[:_STARTS]

    def climb(self, pair: Pair, order: IntArray, n_rows: int) -> Pair:
        """Return the pair after every feature in turn has taken its best slots, until nothing helps or rows run out."""
        hidden = self.scorer.hidden(np.stack([pair.high, pair.low]))
        best, n_left = pair, n_rows
        while n_left > 0:
            before = best.gap
            for i in order:
                n_left -= 2 * len(self.options[i])
                best, hidden = self._improved(best, hidden, int(i))
                if n_left <= 0:
                    break
            if best.gap <= before:
                break
        return best

    def _improved(self, pair: Pair, hidden: Array, i: int) -> tuple[Pair, Array]:
        high, low = self.moves(pair.high, hidden[0], i), self.moves(pair.low, hidden[1], i)
        if (i == self.feature) == self.by_others:  # both rows have the same slot
            first = second = int((high.values - low.values).argmax())
        elif i == self.feature:
            first, second = self.best_pair(high.values, low.values)
        else:
            first, second = int(high.values.argmax()), int(low.values.argmin())
        gap = float(high.values[first] - low.values[second])
        if gap <= pair.gap:
            return pair, hidden
        moved = np.stack([high.hidden[first], low.hidden[second]])
        return Pair(high.rows[first], low.rows[second], gap, self.target), moved


def _extremes(values: Array) -> list[tuple[int, int]]:
    """Return the positions of the largest and the smallest value in every column."""
    return list(zip(values.argmax(axis=0).tolist(), values.argmin(axis=0).tolist(), strict=True))


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
    contexts = drawn_rows(tables, random, len(options[feature]))
    target = feature if by_others else None
    if of_others:
        target = _most_moved(tables, feature, contexts)
    search = _Search(tables, feature, target, tuple(options), allowed, by_others)
    order = random.permutation(model.n_features)
    climbed = [search.climb(pair, order, most_rows(tables) // _STARTS) for pair in search.starts(contexts)]
    return max(climbed, key=lambda pair: pair.gap)


def drawn_rows(tables: Tables, random: np.random.Generator, n_moves: int) -> IntArray:
    """Return 8 to 64 random rows of slots, (row, feature), given how many rows a search makes of each."""
    n_rows = int(np.clip(most_rows(tables) / n_moves, 8, 64))
    return np.stack([random.choice(slots, n_rows) for slots in tables.reachable], axis=1)


def most_rows(tables: Tables) -> int:
    """Return how many rows either half of a search may compute."""
    model = tables.model
    return int(_BUDGET / (model.n_features * model.n_experts * model.n_members * (1 + model.n_outputs)))


def _most_moved(tables: Tables, feature: int, contexts: IntArray) -> int:
    """Return the other feature whose contribution moves most while a feature takes each of its slots."""
    every = SlotRows.of(tables, np.arange(tables.model.n_features))
    moved = np.zeros(tables.model.n_features)
    for row, hidden in zip(contexts, every.hidden(contexts), strict=True):
        found = every.contributions(*every.moved(row, hidden, feature, tables.reachable[feature]))
        moved = np.maximum(moved, np.ptp(found, axis=0))
    moved[feature] = -1.0
    return int(moved.argmax())
