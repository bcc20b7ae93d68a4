"""A table as positions in pools: all values that an attack may give to each column.

A pool holds the values of the table and the middle between neighbours, which together pass every threshold between
two values; values far outside; a missing one; and, for text, a level that no row has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Pool", "Pools", "make_pools"]

UNSEEN = "(a level that no row has)"
FAR = (1.0, 1e3)
"""How far outside of the table values lie, in units of its range."""

Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pool:
    """The values of a column. The first ``n_ordered`` ascend."""

    values: "pd.Series[Any]"
    n_ordered: int

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Pools:
    """The pools of all columns, and the rows of the table as positions in them."""

    columns: Mapping[str, Pool]
    rows: Positions  # (row, column)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def table(self, rows: Positions) -> "pd.DataFrame":
        """Return rows of positions as a table."""
        import pandas as pd

        columns = zip(self.columns.items(), rows.T, strict=True)
        return pd.DataFrame({name: pool.values.array.take(at) for (name, pool), at in columns})


def make_pools(X: "pd.DataFrame", knots: Mapping[str, Iterable[float]] | None = None) -> Pools:
    """Return the pools of a table. ``knots`` are further values of numbers."""
    more = knots or {}
    made = {str(name): _pool(X[name], more.get(str(name), ())) for name in X.columns}
    pools = {name: pool for name, (pool, _) in made.items()}
    return Pools(pools, np.stack([at for _, at in made.values()], axis=1))


def _pool(column: "pd.Series[Any]", knots: Iterable[float]) -> tuple[Pool, Positions]:
    return _numbers(column, knots) if column.dtype.kind in "biuf" else _levels(column)


def _numbers(column: "pd.Series[Any]", knots: Iterable[float]) -> tuple[Pool, Positions]:
    import pandas as pd

    found = column.to_numpy(dtype=np.float64)
    own = np.unique(found[np.isfinite(found)])
    width = max(own[-1] - own[0], 1.0)
    outside = [end + sign * far * width for end, sign in ((own[0], -1), (own[-1], 1)) for far in FAR]
    middles = (own[1:] + own[:-1]) / 2
    ordered = np.unique(np.concatenate([own, middles, outside, np.fromiter(knots, dtype=np.float64)]))
    at = np.where(np.isfinite(found), np.searchsorted(ordered, found), len(ordered))
    return Pool(pd.Series(np.append(ordered, np.nan)), len(ordered)), at


def _levels(column: "pd.Series[Any]") -> tuple[Pool, Positions]:
    import pandas as pd

    at, levels = pd.factorize(column)
    values = pd.Series([*levels, UNSEEN, None], dtype=column.dtype)
    return Pool(values, 0), np.where(at < 0, len(values) - 1, at)
