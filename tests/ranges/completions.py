"""Ways to fill in unknown features: at random, on every vertex of a small model, and climbing to a high score."""

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding import Cells, Columns
from nae.explanation import PredictionRange
from nae.ranges import Domain
from nae.tables import TableModel
from tests.laws.models import make_table

__all__ = ["assert_holds", "climbed", "every_vertex", "random_completions"]


def random_completions(
    random: np.random.Generator, model: TableModel, table: Columns, features: list[int], n: int
) -> Columns:
    """Return every row ``n`` times, with random values of the features: between knots, odd, missing, unseen."""
    arrays = [np.repeat(array, n) for array in table.arrays]
    drawn = make_table(random, model.schema, n * table.n_rows)
    for feature in features:
        arrays[feature] = drawn.arrays[feature]
    return Columns(tuple(arrays), table.names)


def every_vertex(model: TableModel, row: Cells, domains: tuple[Domain, ...], parts: int = 1) -> Array:
    """Return the scores at all combinations of vertices and of ``parts`` - 1 points between, (combination, output)."""
    places = [_places(domain, parts) for domain in domains]
    grid = np.stack(np.meshgrid(*(np.arange(len(place[0])) for place in places), indexing="ij"), -1)
    at = grid.reshape(-1, len(domains))
    slot, fraction = (np.repeat(part, len(at), axis=0) for part in (row.slot, row.fraction))
    for d, (domain, place) in enumerate(zip(domains, places, strict=True)):
        slot[:, domain.feature], fraction[:, domain.feature] = place[0][at[:, d]], place[1][at[:, d]]
    return model.decision_function(Cells(slot, fraction)).reshape(len(at), -1)


def climbed(model: TableModel, row: Cells, domains: tuple[Domain, ...], *, output: int = 0, sign: int = 1) -> float:
    """Return a high (``sign`` 1) or low score: the best vertex of one domain at a time, until none helps."""
    best = float(sign * model.decision_function(row).reshape(-1)[output])
    while True:
        before = best
        for domain in domains:
            rows = Cells(*(np.repeat(part, len(domain), axis=0) for part in (row.slot, row.fraction)))
            rows = domain.place(rows, np.arange(len(domain)))
            values = sign * model.decision_function(rows).reshape(len(domain), -1)[:, output]
            if values.max() > best:
                best, row = float(values.max()), rows.take(np.array([values.argmax()]))
        if best == before:
            return sign * best


def assert_holds(found: PredictionRange, scores: Array) -> None:
    """Check that all scores, (row, completion, ...), lie within the range; there is no tolerance."""
    lower, upper = (end.reshape(len(found), 1, -1) for end in (found.lower, found.upper))
    scores = scores.reshape(len(found), -1, lower.shape[2])
    assert np.all(lower <= scores)
    assert np.all(scores <= upper)


def _places(domain: Domain, parts: int) -> tuple[IntArray, Array]:
    """Return slots and fractions of the vertices, and of points between those that are joined."""
    place = domain.slot + domain.fraction
    between = np.flatnonzero(domain.joined)
    steps = [place[between] + part / parts * (place[between + 1] - place[between]) for part in range(1, parts)]
    place = np.concatenate([place, *steps])
    return np.floor(place).astype(np.int64), place - np.floor(place)
