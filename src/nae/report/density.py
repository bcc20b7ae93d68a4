"""The density of rows in the map of each pair of features, in four steps, for maps that fade."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding.cells import Cells
from nae.explanation.grid import FEW_VALUES, make_line
from nae.explanation.reference import require_statistics
from nae.tables.model import TableModel

__all__ = ["MOST_PAIRS", "Density", "find_density"]

MOST_PAIRS = 500  # the page stores the density of this many pairs, the strongest ones; each takes 320 bytes
_REACH = 3  # number of places along a number over which the weight of a row falls to zero
_ENOUGH = 5.0  # number of rows near a place that shows full colour
_STEPS = 3


@dataclass(frozen=True, eq=False)
class Density:
    """The density of rows near each place of each pair's map, from 0 (none) to 3 (enough)."""

    pairs: tuple[tuple[int, int], ...]
    levels: tuple[IntArray, ...]  # per pair (place of the first, place of the second)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values: all levels in one text, four per byte, the first in the lowest bits."""
        flat = np.concatenate([np.empty(0, dtype=np.int64), *(level.ravel() for level in self.levels)])
        padded = np.concatenate([flat, np.zeros(-len(flat) % 4, dtype=np.int64)])
        packed = (padded.reshape(-1, 4) << np.array([0, 2, 4, 6])).sum(axis=1).astype(np.uint8)
        return {
            "pairs": [list(pair) for pair in self.pairs],
            "levels": base64.b64encode(packed.tobytes()).decode("ascii"),
        }


def find_density(model: TableModel, cells: Cells, listed: tuple[bool, ...]) -> Density:
    """Return the density of the rows of ``cells``; ``listed`` marks features that have a place for every value."""
    lines = [make_line(model, i, resolution=FEW_VALUES) for i in range(model.n_features)]
    places = [_places(model, i, line, cells, is_listed=listed[i]) for i, line in enumerate(lines)]
    is_smooth = [
        feature.kind == "number" and not few for feature, few in zip(model.schema.features, listed, strict=True)
    ]
    pairs = _strongest(model)
    found = []
    for pair in pairs:
        shape = tuple(len(lines[i]) for i in pair)
        counts = _count((places[pair[0]], places[pair[1]]), shape)
        has_gap = [model.schema.features[i].has_missing for i in pair]
        found.append(_levels(counts, [is_smooth[i] for i in pair], has_gap))
    return Density(pairs, tuple(found))


def _strongest(model: TableModel) -> tuple[tuple[int, int], ...]:
    influence = np.square(require_statistics(model).influence).sum(axis=2)
    first, second = np.triu_indices(model.n_features, k=1)
    order = np.argsort(-(influence + influence.T)[first, second], kind="stable")[:MOST_PAIRS]
    return tuple((int(first[at]), int(second[at])) for at in np.sort(order))


def _places(model: TableModel, i: int, line: Cells, cells: Cells, *, is_listed: bool) -> IntArray:
    """Return for each row the position of its value, or of the nearest value of a number; -1 if there is none."""
    feature, start = model.schema.features[i], int(model.schema.offsets[i])
    at = line.slot[:, 0] - start + line.fraction[:, 0].astype(np.float64)
    position = cells.slot[:, i] - start + cells.fraction[:, i].astype(np.float64)
    if feature.kind == "number" and not is_listed:
        known = at < feature.n_values
        middle = (at[known][1:] + at[known][:-1]) / 2
        nearest = np.searchsorted(middle, position)
        return np.where(position < feature.n_values, nearest, _exact(at, position))
    return _exact(at, np.rint(position) if feature.kind == "number" else position)


def _exact(at: AnyArray, position: AnyArray) -> IntArray:
    if len(at) == 0:  # a category without levels has no place
        return np.full(len(position), -1)
    order = np.argsort(at, kind="stable")
    found = order[np.searchsorted(at[order], position).clip(max=len(at) - 1)]
    return np.where(at[found] == position, found, -1)


def _count(places: tuple[IntArray, IntArray], shape: tuple[int, ...]) -> Array:
    known = (places[0] >= 0) & (places[1] >= 0)
    flat = places[0][known] * shape[1] + places[1][known]
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _levels(counts: Array, is_smooth: list[bool], has_gap: list[bool]) -> IntArray:
    """Return steps from 0 to 3. Enough is half of the uniform density, but at least one row and at most five."""
    even = counts.sum() / max(counts.size, 1)
    for axis in (0, 1):
        if is_smooth[axis]:
            counts = _blur(counts, axis, has_gap=has_gap[axis])
            even *= _REACH  # the sum of its weights
    near = np.minimum(counts / min(max(even / 2, 1.0), _ENOUGH), 1.0)
    return np.asarray(np.ceil(_STEPS * near), dtype=np.int64)


def _blur(counts: Array, axis: int, *, has_gap: bool) -> Array:
    """Return the counts smoothed over neighbouring places of a number, without *missing*, the last place."""
    out = np.moveaxis(counts, axis, 0).copy()
    known: Any = np.arange(len(out) - has_gap)
    out[known] = np.maximum(1 - np.abs(known[:, None] - known) / _REACH, 0) @ out[known]
    return np.asarray(np.moveaxis(out, 0, axis))
