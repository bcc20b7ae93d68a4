"""The values at which an interaction is shown: a line of cells per feature, and the rows near each of them."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.schema import Category, Feature, Number
from nae.explanation.reference import require_statistics
from nae.explanation.shapes import value_order
from nae.tables.model import TableModel

__all__ = ["FEW_VALUES", "N_PANELS", "Axis", "central_range", "is_listed", "make_axis", "make_line", "row_counts"]

N_PANELS = 5  # largest number of values of a third feature
FEW_VALUES = 31  # numbers with at most this many values show each of them, such as the days of a month
_ON_KNOTS = 0.8  # if this share of the distinct values are knots, the knots are taken to be all values
_CENTRAL = 0.995  # a long tail would leave most of a map empty


@dataclass(frozen=True, eq=False)
class Axis:
    """One of the features, and its values at which the interaction is given."""

    name: str
    kind: str  # 'number', 'boolean' or 'category'
    labels: tuple[str, ...]
    numbers: Array  # (value,), NaN where the value is no number
    weight: Array  # (value,), share of the training rows nearest each value


def make_line(model: TableModel, i: int, *, resolution: int, is_panel: bool = False) -> Cells:
    """Return the values of one feature to show, as cells of one column; for a panel, a few values that occur."""
    statistics, slots = require_statistics(model), model.schema.slots(i)
    feature, weight = model.schema.features[i], statistics.weight[slots]
    if is_panel and not isinstance(feature, Category) and feature.n_values > N_PANELS:
        slot, fraction = feature.locate(_quantiles(feature.knots, weight[: feature.n_values]))
    else:
        limit = N_PANELS if is_panel else resolution
        slot, fraction = _places(feature, weight, statistics.mean[slots], limit)
    if feature.has_missing:
        slot, fraction = np.append(slot, feature.n_values), np.append(fraction, 0.0)
    stacked = (slot + model.schema.offsets[i]).astype(np.int32)
    return Cells(stacked[:, None], fraction[:, None].astype(model.experts.dtype))


def _places(feature: Feature, weight: Array, mean: Array, resolution: int) -> tuple[IntArray, Array]:
    """Return slots (counted within the feature) and fractions of the known values to show."""
    if isinstance(feature, Category):
        order = value_order(feature, mean)
        order = order[order < feature.n_values]
        if resolution < feature.n_values:  # the most frequent ones
            kept = np.argsort(-weight[: feature.n_values], kind="stable")[:resolution]
            order = order[np.isin(order, kept)]
        return order, np.zeros(len(order))
    if feature.n_values <= resolution:
        return np.arange(feature.n_values), np.zeros(feature.n_values)
    return feature.locate(_spread_numbers(feature, weight[: feature.n_values], resolution))


def _spread_numbers(feature: Number, weight: Array, resolution: int) -> Array:
    """Return evenly spaced numbers over the central part of the range; for integers, only values that occur."""
    knots = feature.knots
    low, high = central_range(knots, weight)
    if high <= low:
        return knots[[0, -1]]
    numbers = np.linspace(low, high, resolution)
    if not feature.integral:
        return numbers
    if len(knots) <= FEW_VALUES:
        return np.unique(knots[np.abs(knots - numbers[:, None]).argmin(axis=1)])
    return np.unique(np.floor(numbers + 0.5))


def is_listed(knots: Array, values: Array) -> bool:
    """Return whether the knots of a number are all its values, and few enough to show each; ``values`` are of rows."""
    if len(knots) > FEW_VALUES:
        return False
    distinct = np.unique(values[~np.isnan(values)])
    return len(distinct) == 0 or bool(np.isin(distinct, knots).mean() >= _ON_KNOTS)


def _quantiles(knots: Array, weight: Array) -> Array:
    """Return a few knots, each the median of an equal part of the rows."""
    mass = (np.cumsum(weight) - weight / 2) / weight.sum()
    levels = (np.arange(N_PANELS) + 0.5) / N_PANELS
    return np.unique(knots[np.abs(mass[:, None] - levels).argmin(axis=0)])


def central_range(knots: Array, weight: Array) -> tuple[float, float]:
    """Return the outermost knots within the central 99 % of the weight."""
    if weight.sum() <= 0:
        return float(knots[0]), float(knots[-1])
    mass = (np.cumsum(weight) - weight / 2) / weight.sum()
    low = min(int(np.searchsorted(mass, 1 - _CENTRAL)), len(knots) - 1)
    high = max(int(np.searchsorted(mass, _CENTRAL, side="right")) - 1, 0)
    return float(knots[low]), float(knots[max(low, high)])


def make_axis(model: TableModel, i: int, line: Cells) -> Axis:
    """Return the values of a line as texts and numbers, and the share of the training rows nearest each."""
    feature, start = model.schema.features[i], int(model.schema.offsets[i])
    within, fraction = line.slot[:, 0] - start, line.fraction[:, 0].astype(np.float64)
    numbers = np.full(len(line), np.nan)
    if not isinstance(feature, Category):
        inside = within < feature.n_values
        low = feature.knots[np.where(inside, within, 0)]
        high = feature.knots[np.where(inside & (fraction > 0), within + 1, np.where(inside, within, 0))]
        numbers = np.where(inside, low * (1 - fraction) + high * fraction, np.nan)
    labels = feature.labels
    texts = [
        labels[at] if part == 0 else f"{number:.6g}" for at, part, number in zip(within, fraction, numbers, strict=True)
    ]
    slots = model.schema.slots(i)
    known = Cells(np.arange(slots.start, slots.stop, dtype=np.int32)[:, None], np.zeros((feature.n_slots, 1)))
    nearest = _nearest(line, known)
    weight = np.bincount(nearest, require_statistics(model).weight[slots], minlength=len(line))
    return Axis(feature.name, feature.kind, tuple(texts), numbers, weight / weight.sum())


def _nearest(line: Cells, cells: Cells) -> IntArray:
    """Return the nearest value of a line for each cell of one column, by position in the table."""
    at = line.slot[:, 0] + line.fraction[:, 0].astype(np.float64)
    order = np.argsort(at, kind="stable")
    position = cells.slot[:, 0] + cells.fraction[:, 0].astype(np.float64)
    middle = (at[order][1:] + at[order][:-1]) / 2
    return order[np.searchsorted(middle, position)]


def row_counts(chosen: tuple[int, ...], lines: tuple[Cells, ...], cells: Cells) -> Array:
    """Return how many rows lie nearest each point of the grid."""
    places = [
        _nearest(line, Cells(cells.slot[:, [i]], cells.fraction[:, [i]])) for i, line in zip(chosen, lines, strict=True)
    ]
    counts = np.zeros([len(line) for line in lines])
    np.add.at(counts, tuple(places), 1.0)
    return counts
