"""The pictures of a fitted model, thinned to be stored: curves of features, maps of pairs, panels of three."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split
from nae.explanation import Axis, FeatureShape, GlobalExplanation, InteractionExplanation
from nae.tables import TableModel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["describe", "describe_ebm", "read_global", "read_interaction"]

N_VALUES = 120
N_DOTS = 260
DIGITS = 4
PAIR = ("Longitude", "Latitude")
TRIPLE = ("Longitude", "Latitude", "AveRooms")
LOS_ANGELES = {"Longitude": (-119.0, -117.4), "Latitude": (33.55, 34.5)}


def describe(model: TableModel, split: Split) -> dict[str, Any]:
    """Return the pictures of one of our models as JSON values."""
    found = {"global": _thin(model.explain_global(split.test.X.head(2000))).to_dict()}
    if set(TRIPLE) <= set(model.feature_names):
        pair = model.explain_interaction(*PAIR, X=split.train.X, resolution=56)
        three = model.explain_interaction(*TRIPLE, X=split.train.X, resolution=200)
        found |= {"pair": _without_detail(pair).to_dict(), "three": _without_detail(_cropped(three)).to_dict()}
    return _rounded_all(found)


def describe_ebm(model: Any, split: Split) -> dict[str, Any]:
    """Return an EBM's pictures of Longitude: the sum of its terms, their smallest and largest sums, and the pair's map.

    As in the paper, every pair counts fully as Longitude's.
    """
    if PAIR[0] not in split.train.X:
        return {}
    explanation = GlobalExplanation(
        name="EBM",
        features=(_ebm_shape(model, split, PAIR[0]),),
        outputs=("score",),
        classes=(),
        link="identity",
        intercept=np.zeros(1),
        quantile_levels=(0.05, 0.95),
        additivity=1.0,
        interaction_share=0.0,
        cancellation=1.0,
        stability=None,
    )
    return _rounded_all({"global": explanation.to_dict(), "pair": _ebm_pair(model, split).to_dict()})


def read_global(found: dict[str, Any]) -> GlobalExplanation:
    """Return the curves in the result of :func:`describe`."""
    return GlobalExplanation.from_dict(found["global"])


def read_interaction(found: dict[str, Any], which: str) -> InteractionExplanation:
    """Return the map (``pair``) or the panels (``three``) in the result of :func:`describe`."""
    return InteractionExplanation.from_dict(found[which])


def _thin(explanation: GlobalExplanation) -> GlobalExplanation:
    return replace(explanation, features=tuple(_thin_shape(shape) for shape in explanation.features))


def _thin_shape(shape: FeatureShape) -> FeatureShape:
    kept = _kept_values(shape)
    # The rows of a value that is left out count for the next value that is kept, also in its mean.
    owner = np.searchsorted(kept, np.arange(len(shape.labels)))
    weight = np.asarray(np.bincount(owner, shape.weight, minlength=len(kept)), dtype=np.float64)
    totals = np.stack([np.bincount(owner, shape.weight * each, minlength=len(kept)) for each in shape.mean.T], axis=1)
    mean = np.where(weight[:, None] > 0, totals / np.maximum(weight, 1e-12)[:, None], shape.mean[kept])
    dots = None if shape.dots is None or shape.dots_at is None else (shape.dots_at[:N_DOTS], shape.dots[:N_DOTS])
    return replace(
        shape,
        labels=tuple(shape.labels[at] for at in kept),
        roles=tuple(shape.roles[at] for at in kept),
        numbers=shape.numbers[kept],
        weight=weight,
        mean=mean,
        lower=shape.lower[kept],
        upper=shape.upper[kept],
        quantiles=shape.quantiles[:, kept],
        member_spread=shape.member_spread[kept],
        dots_at=None if dots is None else dots[0],
        dots=None if dots is None else dots[1],
    )


def _kept_values(shape: FeatureShape) -> NDArray[np.intp]:
    """Return the values to keep: all levels, or the values of a number nearest to even places and quantiles."""
    every = np.arange(len(shape.labels))
    curve = every[[role == "value" for role in shape.roles]]
    if not shape.is_number or len(curve) <= N_VALUES:
        return every
    numbers = shape.numbers[curve]
    even = np.linspace(numbers[0], numbers[-1], N_VALUES // 2)
    nearest = np.abs(numbers[:, None] - even).argmin(axis=0)
    spread = np.linspace(0, len(curve) - 1, N_VALUES // 2).round().astype(np.intp)
    return np.union1d(curve[np.union1d(nearest, spread)], np.setdiff1d(every, curve))


def _cropped(explanation: InteractionExplanation) -> InteractionExplanation:
    """Return the panels around Los Angeles, as in the paper."""
    places = []
    for axis in explanation.axes[:2]:
        low, high = LOS_ANGELES[axis.name]
        inside = np.flatnonzero((axis.numbers >= low) & (axis.numbers <= high))
        places.append(inside if len(inside) > 1 else np.arange(len(axis.numbers)))
    axes = [_picked(axis, at) for axis, at in zip(explanation.axes[:2], places, strict=True)]
    grid: tuple[Any, ...] = np.ix_(*places)
    support = explanation.support
    return replace(
        explanation,
        axes=(*axes, explanation.axes[2]),
        contributions=explanation.contributions[(slice(None), *grid)],
        support=None if support is None else support[grid],
    )


def _picked(axis: Axis, at: NDArray[np.intp]) -> Axis:
    weight = axis.weight[at]
    return replace(
        axis,
        labels=tuple(axis.labels[i] for i in at),
        numbers=axis.numbers[at],
        weight=weight / max(float(weight.sum()), 1e-12),
    )


def _without_detail(explanation: InteractionExplanation) -> InteractionExplanation:
    """Return the explanation with the sum of the contributions as its first one, because pictures show the sum."""
    total = np.zeros_like(explanation.contributions)
    total[0] = explanation.total
    return replace(explanation, contributions=total)


def _rounded_all(values: dict[str, Any]) -> dict[str, Any]:
    """Return JSON values with few digits."""
    return {name: _rounded(each) for name, each in values.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return _rounded_all(value)
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    # Zeros are written as 0, because half of a map is zeros.
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) and value else 0 if value == 0.0 else value


def _ebm_shape(model: Any, split: Split, name: str) -> FeatureShape:
    values = np.quantile(split.train.X[name], np.linspace(0, 1, N_VALUES))
    values = np.unique(values.round(3))
    terms = [t for t, features in enumerate(model.term_features_) if _index(split, name) in features]
    lower, upper = np.zeros(len(values)), np.zeros(len(values))
    mean = np.zeros(len(values))
    for term in terms:
        scores = _ebm_term(model, split, term, name, values)
        lower, upper, mean = lower + scores.min(axis=1), upper + scores.max(axis=1), mean + scores.mean(axis=1)
    rows = split.test.X.head(N_DOTS)
    dots = model.eval_terms(rows)[:, terms].sum(axis=1)
    places = np.searchsorted(values, split.train.X[name]).clip(max=len(values) - 1)
    weight = np.bincount(places, minlength=len(values)) / len(split.train)
    centre = float(weight @ mean)
    blank = np.zeros((2, 1))  # missing and unseen, which no row has

    def column(effects: NDArray[Any]) -> NDArray[Any]:
        return np.vstack([(effects - centre)[:, None], blank])

    return FeatureShape(
        name=name,
        kind="number",
        labels=(*(f"{value:g}" for value in values), "missing", "unseen"),
        roles=(*("value" for _ in values), "missing", "unseen"),
        numbers=np.append(values, [np.nan, np.nan]),
        weight=np.append(weight, [0.0, 0.0]),
        mean=column(mean),
        lower=column(lower),
        upper=column(upper),
        quantiles=np.stack([column(lower), column(upper)]),
        member_spread=np.zeros((len(values) + 2, 1)),
        importance=np.array([float(np.std(dots))]),
        additivity=np.ones(1),
        interaction_share=np.zeros(1),
        stability=None,
        dots_at=rows[name].to_numpy(),
        dots=(dots - centre)[:, None],
    )


def _index(split: Split, name: str) -> int:
    return list(split.train.X.columns).index(name)


def _ebm_term(model: Any, split: Split, term: int, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return a term at every value, (value, value of the other feature); one column if there is no other feature."""
    others = [i for i in model.term_features_[term] if i != _index(split, name)]
    if not others:
        return np.asarray(model.eval_terms(_rows(split, {name: values}))[:, [term]])
    other = str(split.train.X.columns[others[0]])
    levels = np.unique(np.quantile(split.train.X[other], np.linspace(0, 1, 97)))
    grid = {name: np.repeat(values, len(levels)), other: np.tile(levels, len(values))}
    return np.asarray(model.eval_terms(_rows(split, grid))[:, term].reshape(len(values), len(levels)))


def _rows(split: Split, columns: dict[str, NDArray[Any]]) -> "pd.DataFrame":
    """Return rows with some given columns and the median in all others."""
    import pandas as pd

    n_rows = len(next(iter(columns.values())))
    middle = split.train.X.median()
    return pd.DataFrame({name: columns.get(name, np.full(n_rows, middle[name])) for name in split.train.X.columns})


def _ebm_pair(model: Any, split: Split, resolution: int = 56) -> InteractionExplanation:
    ends = [np.quantile(split.train.X[name], [0.005, 0.995]) for name in PAIR]
    lines = [np.linspace(low, high, resolution) for low, high in ends]
    first, second = (grid.ravel() for grid in np.meshgrid(*lines, indexing="ij"))
    terms = [t for t, features in enumerate(model.term_features_) if set(features) <= {_index(split, n) for n in PAIR}]
    found = model.eval_terms(_rows(split, {PAIR[0]: first, PAIR[1]: second}))[:, terms].sum(axis=1)
    total = np.zeros((2, resolution, resolution, 1))
    total[0, :, :, 0] = found.reshape(resolution, resolution)
    places = [
        np.abs(split.train.X[name].to_numpy()[:, None] - line).argmin(axis=1)
        for name, line in zip(PAIR, lines, strict=True)
    ]
    support = np.zeros((resolution, resolution))
    np.add.at(support, tuple(places), 1)
    axes = tuple(
        Axis(
            name,
            "number",
            tuple(f"{value:.6g}" for value in line),
            line,
            np.bincount(at, minlength=resolution) / len(at),
        )
        for name, line, at in zip(PAIR, lines, places, strict=True)
    )
    note = "Both curves and the pair's own term."
    return InteractionExplanation(axes, ("score",), (), "identity", "mean", True, note, total, support)
