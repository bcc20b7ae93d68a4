"""Looking for an input that breaks a bound: coordinate ascent over all slots, then steps along finite differences."""

import numpy as np

from nae._typing import Array
from nae.encoding import Category, Cells, Columns, Number
from nae.tables import TableModel

__all__ = ["climb", "climb_smoothly"]


def climb(model: TableModel, start: Cells, feature: int, *, output: int = 0, sign: float = 1.0) -> Cells:
    """Return the row nearest ``start`` at which ``feature`` contributes most, its own value held.

    Every other feature tries all of its slots, *missing* and *unseen* too, and points between knots, until no single
    change helps.
    """
    best, value = start, _value(model, start, feature, output, sign)[0]
    for _ in range(10):
        before = value
        for other in range(model.n_features):
            if other == feature:
                continue
            options = _options(model, best, other)
            values = _value(model, options, feature, output, sign)
            if values.max() > value:
                best, value = options.take(np.array([values.argmax()])), values.max()
        if value == before:
            break
    return best


def climb_smoothly(model: TableModel, row: Columns, feature: int, *, sign: float = 1.0, n_steps: int = 30) -> Columns:
    """Return a row reached by following the gradient of a contribution over the values of the other numbers."""
    position = _positions(model, row)
    free = [i for i, f in enumerate(model.schema.features) if isinstance(f, Number) and i != feature]
    step = 0.5
    for _ in range(n_steps):
        slope = np.zeros(len(position))
        for i in free:
            ends = [_move(position, i, delta) for delta in (1e-3, -1e-3)]
            up, down = (_at(model, row, end, feature, sign) for end in ends)
            slope[i] = up - down
        trial = position + step * np.sign(slope)
        if _at(model, row, trial, feature, sign) > _at(model, row, position, feature, sign):
            position = trial
        else:
            step /= 2
    return _row_at(model, row, position)


def _value(model: TableModel, cells: Cells, feature: int, output: int, sign: float) -> Array:
    return sign * model.contribute(cells)[:, feature, output]


def _options(model: TableModel, row: Cells, feature: int) -> Cells:
    slots = model.schema.slots(feature)
    own = np.arange(slots.start, slots.stop)
    spec = model.schema.features[feature]
    between = own[: spec.n_values - 1] if isinstance(spec, Number) else own[:0]
    pairs = [(own, 0.0), *((between, part) for part in (0.2, 0.5, 0.8))]
    slot = np.concatenate([at for at, _ in pairs])
    fraction = np.concatenate([np.full(len(at), part) for at, part in pairs])
    cells = Cells(np.repeat(row.slot, len(slot), axis=0), np.repeat(row.fraction, len(slot), axis=0))
    cells.slot[:, feature], cells.fraction[:, feature] = slot, fraction
    return cells


def _positions(model: TableModel, row: Columns) -> Array:
    """Return where among its knots every number lies; what is no number stays where it is."""
    out = np.zeros(model.n_features)
    for i, feature in enumerate(model.schema.features):
        if isinstance(feature, Number):
            value = np.nan_to_num(row.arrays[i].astype(float), posinf=feature.knots[-1], neginf=feature.knots[0])
            out[i] = np.interp(value, feature.knots, np.arange(feature.n_values))[0]
    return out


def _move(position: Array, feature: int, delta: float) -> Array:
    moved = position.copy()
    moved[feature] += delta
    return moved


def _row_at(model: TableModel, row: Columns, position: Array) -> Columns:
    arrays = list(row.arrays)
    for i, feature in enumerate(model.schema.features):
        if not isinstance(feature, Category):
            arrays[i] = np.array([np.interp(position[i], np.arange(feature.n_values), feature.knots)])
    return Columns(tuple(arrays), row.names)


def _at(model: TableModel, row: Columns, position: Array, feature: int, sign: float) -> float:
    return float(_value(model, model.cells(_row_at(model, row, position)), feature, 0, sign)[0])
