"""Numbers for what the paper's curves and maps of Housing show."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nae.explanation import GlobalExplanation, InteractionExplanation

__all__ = ["city_over_country", "coast_over_inland", "low_share", "opening", "rooms"]


def city_over_country(shapes: GlobalExplanation | None, place: float) -> float | None:
    """Return how much more Longitude adds at a city than in the empty region between the two large cities."""
    city, country = (_near(shapes, at, width) for at, width in ((place, 0.15), (-120.5, 0.5)))
    return None if city is None or country is None else city - country


def _near(shapes: GlobalExplanation | None, place: float, width: float) -> float | None:
    """Return the mean effect of Longitude around a place."""
    if shapes is None:
        return None
    shape = shapes.feature("Longitude")
    weight = shape.weight * (np.abs(shape.numbers - place) <= width)
    return float(weight @ shape.mean[:, 0] / weight.sum()) if weight.sum() else None


def opening(shapes: GlobalExplanation | None) -> float | None:
    """Return the distance of the bounds between −120 and −119, as a multiple of their mean distance."""
    if shapes is None:
        return None
    shape = shapes.feature("Longitude")
    distance = (shape.upper - shape.lower)[:, 0]
    inside = shape.weight * ((shape.numbers >= -120) & (shape.numbers <= -119))
    whole = float(shape.weight @ distance)
    return float(inside @ distance / inside.sum()) / whole if inside.sum() and whole else None


def low_share(shapes: GlobalExplanation | None) -> float | None:
    """Return the share of rows between −120 and −119 in the lower half of the bounds there."""
    shape = None if shapes is None else shapes.feature("Longitude")
    if shape is None or shape.dots is None or shape.dots_at is None:
        return None
    curve = ~np.isnan(shape.numbers)
    middle = np.interp(shape.dots_at, shape.numbers[curve], (shape.upper + shape.lower)[curve, 0] / 2)
    inside = (shape.dots_at >= -120) & (shape.dots_at <= -119)
    return float(np.mean(shape.dots[inside, 0] < middle[inside])) if inside.any() else None


def coast_over_inland(pair: InteractionExplanation | None) -> float | None:
    """Return how much higher a map is at Santa Barbara, on the coast, than at Fresno, inland at the same longitude."""
    if pair is None:
        return None
    longitude, latitude = (axis.numbers for axis in pair.axes)
    column = int(np.nanargmin(np.abs(longitude + 119.75)))
    coast, inland = (int(np.nanargmin(np.abs(latitude - place))) for place in (34.42, 36.75))
    return float(pair.total[column, coast, 0] - pair.total[column, inland, 0])


def rooms(three: InteractionExplanation | None) -> tuple[float, float, float] | None:
    """Return how AveRooms changes a map in places with rows.

    The three numbers are the mean range over the panels; the share of the change from the first to the last panel that
    is not a sum over the two axes; and the range in the south-west divided by that of the rest.
    """
    if three is None or three.support is None:
        return None
    total = three.total[..., 0]  # (longitude, latitude, panel)
    there = three.support.sum(axis=2) > 0
    moved = np.ptp(total, axis=2)
    middle = [axis.numbers[len(axis.numbers) // 2] for axis in three.axes[:2]]
    south_west = np.logical_and.outer(three.axes[0].numbers < middle[0], three.axes[1].numbers < middle[1])
    if not (there & south_west).any() or not (there & ~south_west).any():
        return None
    ratio = float(moved[there & south_west].mean() / moved[there & ~south_west].mean())
    return float(moved[there].mean()), _beyond_pairs(total[:, :, -1] - total[:, :, 0], there), ratio


def _beyond_pairs(change: NDArray[Any], there: NDArray[Any]) -> float:
    """Return the share of a map's variance that is not a sum of functions of the axes, in places with rows."""
    rows, columns = np.nonzero(there)
    design = np.zeros((len(rows), sum(change.shape)))
    design[np.arange(len(rows)), rows] = 1.0
    design[np.arange(len(rows)), change.shape[0] + columns] = 1.0
    values = change[there]
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.var(values - fitted) / max(float(np.var(values)), 1e-12))
