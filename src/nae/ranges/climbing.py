"""The search for rows with a high or a low score: the best vertex of one domain after the other, until none helps."""

from collections.abc import Sequence

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates import Tables
from nae.encoding.cells import Cells
from nae.ranges.domains import Domain

__all__ = ["climb", "row_at", "scores"]

_MOST_SWEEPS = 20


def scores(tables: Tables, cells: Cells) -> Array:
    """Return the scores of rows in double precision, (row,)."""
    found = np.empty(len(cells))
    for rows, part in tables.model.iterate(cells):
        found[rows] = tables.model.contribute(part).sum(axis=1) @ tables.direction
    return found + float(tables.model.intercept @ tables.direction)


def row_at(domains: Sequence[Domain], vertices: IntArray) -> Cells:
    """Return the row that stands on one vertex of every domain; there is a domain for every feature."""
    row = Cells(np.zeros((1, len(domains)), dtype=np.int64), np.zeros((1, len(domains))))
    for domain, vertex in zip(domains, vertices, strict=True):
        row = domain.place(row, np.array([vertex]))
    return row


def climb(tables: Tables, row: Cells, domains: Sequence[Domain], sign: int) -> tuple[Cells, float]:
    """Return a row with a high (``sign`` 1) or a low score, and this score."""
    best = float(sign * scores(tables, row)[0])
    for _ in range(_MOST_SWEEPS):
        before = best
        for domain in domains:
            rows = domain.place(row.take(np.zeros(len(domain), dtype=np.int64)), np.arange(len(domain)))
            found = sign * scores(tables, rows)
            if found.max() > best:
                best, row = float(found.max()), rows.take(np.array([found.argmax()]))
        if best <= before:
            break
    return row, sign * best
