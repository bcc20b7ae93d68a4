"""Search for inputs that break a promised direction.

An attack compares the scores of two inputs that differ in the promised feature alone. There are three kinds:

* pairs: rows of the table, a third of them with other values in some columns, and two values of the feature, which are
  close to each other in half of the pairs;
* sweeps: a row along many values of the feature, in order; each value is compared with the best one before it;
* search: from the worst pairs on, other values are tried in any column, and kept if the score falls no less.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.guarantees.pools import Pools, Positions

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KINDS", "TOLERANCE", "Fall", "Found", "Target", "attack"]

KINDS = ("pairs", "sweeps", "search")
TOLERANCE = 1e-6
"""A fall of at most this share of the score's spread is rounding."""
POPULATION = 250
SWEPT = 200
BATCH = 100_000

Array = NDArray[np.float64]
Score = Callable[["pd.DataFrame"], Array]


@dataclass(frozen=True, eq=False)
class Target:
    """What is attacked: the score of a model, and the direction that it promised for one column."""

    score: Score
    pools: Pools
    column: int
    sign: int

    @property
    def n_values(self) -> int:
        """The number of values that the feature may take. Missing values are outside of its order."""
        return self.pools.columns[self.pools.names[self.column]].n_ordered

    def scores(self, rows: Positions, at: Positions) -> Array:
        """Return the scores of rows with the feature at the given values, times the promised sign."""
        moved = rows.copy()
        moved[:, self.column] = at
        parts = [self.score(self.pools.table(part)) for part in _batches(moved)]
        return self.sign * np.concatenate(parts) if parts else np.empty(0)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows, a lower and a higher value of the feature for each, and by how much the score falls from low to high."""

    rows: Positions  # (pair, column)
    low: Positions
    high: Positions
    falls: Array

    def worst(self, n: int) -> "Pairs":
        """Return the pairs with the largest falls."""
        return self.take(np.argsort(-self.falls, kind="stable")[:n])

    def take(self, at: NDArray[np.intp]) -> "Pairs":
        """Return some of the pairs."""
        return Pairs(self.rows[at], self.low[at], self.high[at], self.falls[at])

    def merged(self, other: "Pairs", where: NDArray[np.bool_]) -> "Pairs":
        """Return these pairs, and the other ones where the mask is true."""
        rows = np.where(where[:, None], other.rows, self.rows)
        ends = (np.where(where, getattr(other, end), getattr(self, end)) for end in ("low", "high", "falls"))
        return Pairs(rows, *ends)


@dataclass(frozen=True)
class Fall:
    """The largest fall, as a share of the score's spread, and the values of the feature between which it happened."""

    size: float
    low: float
    high: float


@dataclass(frozen=True)
class Found:
    """What attacks of one kind on one feature found."""

    kind: str
    feature: str
    n_attacks: int
    n_violations: int
    worst: Fall


def attack(target: Target, random: np.random.Generator, *, spread: float, n_attacks: int) -> list[Found]:
    """Return what a third of the attacks of each kind found."""
    n = n_attacks // len(KINDS)
    pairs = _random_pairs(target, random, n)
    sweeps = _sweeps(target, random, n)
    starts = [each.worst(POPULATION // 2) for each in (pairs, sweeps)]
    tried = _search(target, random, _joined(*starts), n)
    return [_found(*each, target, spread) for each in zip(KINDS, (pairs, sweeps, tried), strict=True)]


def _random_pairs(target: Target, random: np.random.Generator, n: int) -> Pairs:
    ends = random.integers(target.n_values, size=(n, 2))
    ends[::2, 1] = ends[::2, 0] + _steps(random, len(ends[::2]))
    return _tried(target, _contexts(target, random, n), *_in_order(ends, target.n_values))


def _sweeps(target: Target, random: np.random.Generator, n: int) -> Pairs:
    width = min(SWEPT, target.n_values)
    rows = _contexts(target, random, max(1, n // (width - 1)))
    at = np.stack([_path(random, target.n_values, width) for _ in rows])
    scores = target.scores(np.repeat(rows, width, axis=0), at.ravel()).reshape(at.shape)
    best = _last_record(scores)
    falls = np.take_along_axis(scores, best, axis=1)[:, :-1] - scores[:, 1:]
    low = np.take_along_axis(at, best, axis=1)[:, :-1]
    return Pairs(np.repeat(rows, width - 1, axis=0), low.ravel(), at[:, 1:].ravel(), falls.ravel())


def _steps(random: np.random.Generator, n: int) -> Positions:
    """Return steps along the feature: most are short, every fourth is long."""
    rate = random.choice([0.1, 0.1, 0.1, 0.003], size=n)
    return random.geometric(rate) * random.choice([-1, 1], size=n)


def _in_order(ends: Positions, n_values: int) -> tuple[Positions, Positions]:
    """Return a lower and a higher value of each pair. They differ."""
    low, high = np.sort(np.clip(ends, 0, n_values - 1), axis=1).T
    low = np.minimum(low, n_values - 2)
    return low, np.maximum(high, low + 1)


def _path(random: np.random.Generator, n_values: int, width: int) -> Positions:
    """Return positions in ascending order: half of them neighbours, half of them anywhere."""
    near = min(width // 2, n_values)
    first = random.integers(n_values - near + 1)
    anywhere = random.integers(n_values, size=width - near)
    return np.sort(np.concatenate([np.arange(first, first + near), anywhere]))


def _last_record(scores: Array) -> Positions:
    """Return, for every value of a sweep, the position of the highest score so far."""
    highest = np.maximum.accumulate(scores, axis=1)
    where = np.where(scores == highest, np.arange(scores.shape[1]), 0)
    return np.maximum.accumulate(where, axis=1)


def _search(target: Target, random: np.random.Generator, starts: Pairs, n: int) -> Pairs:
    """Return every pair that was tried."""
    current, tried = starts, []
    for _ in range(max(1, n // len(starts.falls))):
        found = _tried(target, *_mutated(target, random, current))
        current = current.merged(found, found.falls >= current.falls)
        tried.append(found)
    return _joined(*tried)


def _mutated(target: Target, random: np.random.Generator, pairs: Pairs) -> tuple[Positions, Positions, Positions]:
    """Return the pairs with another value in one or two columns, or with ends that moved."""
    n = len(pairs.falls)
    rows = pairs.rows
    for share in (1.0, 0.3):
        rows = _with_strangers(target, random, rows, random.random(n) < share)
    does_move = random.random((n, 1)) < 0.4
    steps = np.stack([_steps(random, n), _steps(random, n)], axis=1)
    ends = np.stack([pairs.low, pairs.high], axis=1)
    rows = np.where(does_move, pairs.rows, rows)
    return rows, *_in_order(np.where(does_move, ends + steps, ends), target.n_values)


def _contexts(target: Target, random: np.random.Generator, n: int) -> Positions:
    """Return rows of the table, a third of them with other values in one to three columns."""
    rows = target.pools.rows[random.integers(len(target.pools.rows), size=n)]
    is_strange = random.random(n) < 1 / 3
    for share in (1.0, 0.5, 0.5):
        rows = _with_strangers(target, random, rows, is_strange & (random.random(n) < share))
    return rows


def _with_strangers(
    target: Target, random: np.random.Generator, rows: Positions, where: NDArray[np.bool_]
) -> Positions:
    """Return the rows, with any value of its pool in one column of each row of the mask; every fourth is strange."""
    sizes = np.array([len(pool) for pool in target.pools.columns.values()])
    column = random.integers(rows.shape[1], size=len(rows))
    value = random.integers(sizes[column])
    last = sizes[column] - 1 - random.integers(2, size=len(rows))  # missing; or unseen, or far outside
    value = np.where(random.random(len(rows)) < 0.25, np.maximum(last, 0), value)
    found = rows.copy()
    at = np.flatnonzero(where)
    found[at, column[at]] = value[at]
    return found


def _tried(target: Target, rows: Positions, low: Positions, high: Positions) -> Pairs:
    return Pairs(rows, low, high, target.scores(rows, low) - target.scores(rows, high))


def _joined(*pairs: Pairs) -> Pairs:
    fields = ("rows", "low", "high", "falls")
    return Pairs(*(np.concatenate([getattr(each, name) for each in pairs]) for name in fields))


def _found(kind: str, pairs: Pairs, target: Target, spread: float) -> Found:
    name = target.pools.names[target.column]
    values = target.pools.columns[name].values.to_numpy()
    worst = int(np.argmax(pairs.falls))
    size = max(float(pairs.falls[worst]) / spread, 0.0)
    fall = Fall(size, float(values[pairs.low[worst]]), float(values[pairs.high[worst]]))
    return Found(kind, name, len(pairs.falls), int(np.sum(pairs.falls > TOLERANCE * spread)), fall)


def _batches(rows: Positions) -> Iterator[Positions]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]
