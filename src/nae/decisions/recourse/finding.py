"""Find recourse: read what is asked, search, and turn points into values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from nae.certificates import tables_of
from nae.decisions.reasons.wording import Wording, read_wording
from nae.decisions.recourse.asked import read_asked
from nae.decisions.recourse.bounds import Space
from nae.decisions.recourse.forest import Forest
from nae.decisions.recourse.goals import Goal, read_goal
from nae.decisions.recourse.moves import Moves
from nae.decisions.recourse.neighbours import Neighbours
from nae.decisions.recourse.readable import Reader
from nae.decisions.recourse.rests import Rests
from nae.decisions.recourse.results import FeatureChange, Recourse, Way
from nae.decisions.recourse.search import Search
from nae.decisions.recourse.sentences import target_text, what_text
from nae.decisions.recourse.starts import combined
from nae.decisions.recourse.tries import Tries
from nae.encoding.columns import Columns
from nae.errors import ConfigError, DataError
from nae.ranges.gates import Units
from nae.tables.model import TableModel

__all__ = ["recourse"]

_WORK = 10_000_000  # boxes times logits, if no budget is given


def recourse(
    model: TableModel,
    read: Callable[[Any], Columns],
    row: Any,
    *,
    target: Any,
    output: Any = None,
    k: int = 3,
    n: int = 3,
    like: Any = None,
    budget: int | None = None,
    offset: Any = None,
    wording: Any = None,
    **asked: Any,
) -> Recourse:
    """Return the ways of one row; see :meth:`nae.tables.answers.reaches.Reaches.recourse`."""
    for name, number in (("k", k), ("n", n), *([] if budget is None else [("budget", budget)])):
        _check_count(name, number)
    columns = read(row)
    if columns.n_rows != 1:
        raise DataError(f"recourse needs a single row; got {columns.n_rows}.")
    cells = model.schema.locate(columns, dtype=np.float64)
    now = model.decision_function(model.schema.locate(columns, dtype=model.experts.dtype)).reshape(1, -1)
    goal = read_goal(model, target, output=output, offset=offset, now=now)
    words = read_wording(wording, model.feature_names)
    moves = Moves.of(model, cells, read_asked(model, unnamed=words.unnamed, **asked))
    found = _Found(goal, now, k, words)
    if goal.reached(now)[0]:
        return found.result((), 0.0, 0, is_reached=True)
    if not moves.domains:
        return found.result((), inf, 0)
    near = None if like is None else Neighbours.of(model, model.schema.locate(read(like), dtype=np.float64), cells)
    gate = Units(tables_of(model, np.eye(model.n_outputs)[0]).model)
    forest = Forest(gate, cells, moves)
    tries = Tries(model, cells, forest, goal, near)
    rests = Rests(forest, combined(tries, min(k, len(forest.roots))), k)
    search = Search(Space(cells, forest, goal, rests, near), tries, k=k, budget=budget or _budget(model))
    ways, bound = _ways(search, Reader(model, columns, moves, tries), goal, n)
    return found.result(ways, bound, search.n_boxes)


def _ways(search: Search, reader: Reader, goal: Goal, n: int) -> tuple[tuple[Way, ...], float]:
    """Return up to ``n`` ways, and the lower bound of the cost of all others."""
    ways: list[Way] = []
    listed: list[frozenset[int]] = []
    while len(ways) < n:
        point, bound = search.cheapest(listed)
        if point is None:
            return tuple(ways), bound
        values = reader.values(point)
        if values is None:  # the model rounds its scores to the other side of the threshold
            search.tries.forget(point)
            continue
        listed.append(point.features)
        ways.append(_way(reader, goal, values, bound))
    return tuple(ways), search.lowest(listed)


def _way(reader: Reader, goal: Goal, values: Mapping[int, Any], bound: float) -> Way:
    names = reader.model.feature_names
    changes = [FeatureChange(names[i], reader.old(i), value, reader.cost_of(i, value)) for i, value in values.items()]
    scores = reader.scores(values)
    cost = sum(one.cost for one in changes)
    at = goal.at if scores.shape[1] > 1 else 0
    return Way(tuple(changes), float(scores[0, at]), float(goal.values(scores)[0]), cost, min(bound, cost))


@dataclass(frozen=True, eq=False)
class _Found:
    """What every result says."""

    goal: Goal
    now: Any
    k: int
    wording: Wording

    def result(self, ways: tuple[Way, ...], bound: float, n_boxes: int, *, is_reached: bool = False) -> Recourse:
        """Return the result."""
        return Recourse(
            target=target_text(self.goal, self.wording),
            what=what_text(self.goal, self.wording),
            is_probability=bool(self.goal.model.classes),
            prediction=float(self.goal.values(self.now)[0]),
            is_reached=is_reached,
            ways=ways,
            bound=bound,
            k=self.k,
            n_boxes=n_boxes,
            wording=self.wording,
        )


def _budget(model: TableModel) -> int:
    """Return a number of boxes, fewer for larger models."""
    return int(np.clip(_WORK // (model.n_experts * model.n_features * model.n_members), 5_000, 20_000))


def _check_count(name: str, number: Any) -> None:
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
        raise ConfigError(f"{name} must be an integer of at least 1; got {number!r}.")
