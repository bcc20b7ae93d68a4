"""How additive a model is: five numbers that should be read together.

``additivity_weighted`` is the share of the contributions' variance that the features' own values explain.
``additivity`` is the paper's definition: the mean of the features' shares, in which an unimportant feature counts as
much as any other. Main effects of correlated features can grow and cancel each other, which inflates both numbers.
``interaction_share`` and ``cancellation`` reveal this, so always report them too. ``tightness`` is the share of the
guaranteed range that the contributions use.

Each function takes any rows and anything that has ``contributions(X)`` and tables: an estimator or a
:class:`~nae.tables.TableModel`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.beside import read_weight
from nae.encoding.cells import Cells
from nae.encoding.schema import Number
from nae.errors import DataError
from nae.explanation.members import agreement, member_contributions
from nae.explanation.own import additive_share, mean_effects, own_effects, variance, weighted_share
from nae.explanation.reference import MeanGate, mean_terms
from nae.tables.model import TableModel
from nae.tables.statistics import slot_weights

__all__ = [
    "FeatureMetric",
    "additivity",
    "additivity_summary",
    "additivity_weighted",
    "cancellation",
    "interaction_share",
    "stability",
    "tightness",
]

_BINS = 64


@dataclass(frozen=True)
class FeatureMetric:
    """A number for the whole model and one per feature; ``float(metric)`` is the number of the whole model."""

    name: str
    overall: float
    per_feature: dict[str, float]

    def __float__(self) -> float:
        return self.overall

    def __format__(self, spec: str) -> str:
        return format(self.overall, spec)

    def __str__(self) -> str:
        return f"{self.name} {self.overall:.3f}"


@dataclass(frozen=True, eq=False)
class _Parts:
    """The ingredients of all metrics: values and bounds (row, feature, output), own effects, weights with sum one."""

    model: TableModel
    cells: Cells
    values: Array
    lower: Array
    upper: Array
    own: Array
    share: Array

    def variance(self, values: Array) -> Array:
        """Return the variance over rows, per output."""
        return variance(values, self.share)

    def additive_share(self) -> Array:
        """Return the share of every contribution's variance that its own value explains, (feature, output)."""
        context = self.variance(self.values - self.own)
        return additive_share(self.variance(self.values), context, self.variance(self.values.sum(axis=1)))


def additivity(model: Any, X: Any, *, sample_weight: Any = None) -> FeatureMetric:
    """Return the share of each contribution's variance that its own value explains, Eq. (15); 1 for a GAM.

    The number of the whole model is the paper's: the plain mean over the features. The dial steers it.
    """
    parts = _prepare(model, X, sample_weight)
    share = parts.additive_share()
    return _metric("additivity", share.mean(axis=1), float(share.mean()), parts)


def additivity_weighted(model: Any, X: Any, *, sample_weight: Any = None) -> FeatureMetric:
    """Return additivity with every feature weighted by the variance of its contributions; 1 for a GAM.

    For the whole model, this is the share of the summed variance of all contributions that the features' own values
    explain. The numbers per feature are those of ``additivity``.
    """
    parts = _prepare(model, X, sample_weight)
    share = parts.additive_share()
    overall = weighted_share(share, parts.variance(parts.values))
    return _metric("additivity_weighted", share.mean(axis=1), overall, parts)


def interaction_share(model: Any, X: Any, *, sample_weight: Any = None) -> FeatureMetric:
    """Return the share of the score's variance that context explains; per feature, the share of its context shift."""
    parts = _prepare(model, X, sample_weight)
    score = np.maximum(parts.variance(parts.values.sum(axis=1)), 1e-300)  # (O,)
    rest = parts.variance((parts.values - parts.own).sum(axis=1)) / score
    each = (parts.variance(parts.values - parts.own) / score).mean(axis=1)
    return _metric("interaction_share", each, float(rest.mean()), parts)


def cancellation(model: Any, X: Any, *, sample_weight: Any = None) -> FeatureMetric:
    """Return the summed variance of the contributions over that of the score; above 1, contributions cancel."""
    parts = _prepare(model, X, sample_weight)
    score = np.maximum(parts.variance(parts.values.sum(axis=1)), 1e-300)
    each = (parts.variance(parts.values) / score).mean(axis=1)
    return _metric("cancellation", each, float(each.sum()), parts)


def tightness(model: Any, X: Any, *, sample_weight: Any = None) -> FeatureMetric:
    """Return the share of the range between the bounds that the contributions use, Eq. (18); 1 for a GAM."""
    parts = _prepare(model, X, sample_weight)
    delta = 1e-6 * np.sqrt(parts.variance(parts.values.sum(axis=1))) + 1e-300
    each = []
    for i in range(parts.values.shape[1]):
        bins = _bins_of(parts.model, parts.cells, parts.share, i)
        weight = np.bincount(bins, parts.share)
        used = _bin_range(bins, parts.values[:, i], parts.values[:, i])
        allowed = _bin_range(bins, parts.lower[:, i], parts.upper[:, i])
        ratio = np.clip((used + delta) / (allowed + delta), 0.0, 1.0).mean(axis=1)
        each.append(float(weight @ ratio / weight.sum()))
    return _metric("tightness", np.array(each), float(np.mean(each)), parts)


def additivity_summary(model: Any, X: Any, *, sample_weight: Any = None) -> dict[str, float]:
    """Return both additivities, interaction share, cancellation and tightness of the whole model."""
    shares: tuple[Callable[..., FeatureMetric], ...] = (additivity, additivity_weighted, interaction_share)
    metrics = (*shares, cancellation, tightness)
    table = getattr(model, "model_", model)
    cells = table.cells(X)
    return {metric.__name__: float(metric(table, cells, sample_weight=sample_weight)) for metric in metrics}


def stability(models: Any, X: Any, *, sample_weight: Any = None) -> FeatureMetric:
    """Return how far contributions agree between the members of a model, or between models; 1 is full agreement.

    The result is the mean correlation of two members' contributions over the rows, weighted by their variances. Either
    of two features can carry their product. The contributions are exact for the model at hand; the stability says
    whether another seed would have attributed the product to the same feature. In the number of the whole model,
    features are weighted by their variance.

    Parameters
    ----------
    models
        A model with several members, or a list of models with the same features.
    X
        A table.
    sample_weight
        One weight per row.
    """
    several = models if isinstance(models, (list, tuple)) else [models]
    tables = [_table_of(model) for model in several]
    names, first = tables[0].feature_names, tables[0]
    if len(tables) == 1 and first.n_members == 1:
        raise DataError("stability needs several members or a list of models; got one model of one member.")
    for table in tables[1:]:
        if set(table.feature_names) != set(names) or table.outputs != first.outputs:
            raise DataError("stability needs models of the same features and outputs; theirs differ.")
    if len(tables) == 1:
        values = member_contributions(first, first.cells(X))
    else:
        found = [table.contributions(X) for table in tables]
        orders = [[table.feature_names.index(name) for name in names] for table in tables]
        values = np.stack([one.values[:, order] for one, order in zip(found, orders, strict=True)], axis=-1)
    values = values.reshape(len(values), len(names), -1, values.shape[-1])
    weights = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if len(values) == 0 or weights.shape != (len(values),):
        raise DataError(f"stability needs rows, and one weight each; got {len(values)} and shape {weights.shape}.")
    each = agreement(values, weights).mean(axis=1)
    size = (values.mean(axis=-1).var(axis=0)).sum(axis=1) + 1e-300
    return FeatureMetric("stability", float(size @ each / size.sum()), dict(zip(names, map(float, each), strict=True)))


def _bins_of(model: TableModel, cells: Cells, share: Array, feature: int) -> IntArray:
    """Return the bin of every row: one per level, one for missing, at most 64 quantiles of a number.

    A bin of a number holds at least four rows on average, because a single row would explain itself.
    """
    start = int(model.schema.offsets[feature])
    within = cells.slot[:, feature] - start
    spec = model.schema.features[feature]
    if not isinstance(spec, Number):
        return np.unique(within, return_inverse=True)[1]
    position = within + cells.fraction[:, feature]
    distinct, inverse = np.unique(position, return_inverse=True)
    n_bins = min(_BINS, max(1, int(1 / (share @ share)) // 4))
    if len(distinct) <= n_bins:
        return np.asarray(inverse)
    mass = np.cumsum(np.bincount(inverse, share))
    bins = np.minimum((mass - np.diff(mass, prepend=0) / 2) * n_bins, n_bins - 1).astype(np.int64)
    bins[distinct >= spec.n_values] = n_bins  # missing is a bin of its own
    return np.unique(bins[inverse], return_inverse=True)[1]


def _bin_range(bins: IntArray, lower: Array, upper: Array) -> Array:
    """Return the largest ``upper`` minus the smallest ``lower`` of every bin, (bin, output)."""
    n_bins = int(bins.max()) + 1
    least = np.full((n_bins, lower.shape[1]), np.inf)
    most = np.full((n_bins, lower.shape[1]), -np.inf)
    np.minimum.at(least, bins, lower)
    np.maximum.at(most, bins, upper)
    return np.asarray(most - least)


def _table_of(model: Any) -> TableModel:
    table: TableModel = getattr(model, "model_", model)
    return table


def _prepare(model: Any, X: Any, sample_weight: Any) -> _Parts:
    table = _table_of(model)
    cells = table.cells(X)
    if len(cells) == 0:
        raise DataError("A metric needs at least one row; the table has none.")
    weights = read_weight(sample_weight, len(cells))
    kept = np.flatnonzero(weights)  # a row of weight zero does not count, not even for a range
    cells, weights = cells.take(kept), weights[kept]
    found = table.contributions(cells)
    shape = (len(cells), table.n_features, table.n_outputs)
    values, lower, upper = (part.reshape(shape) for part in (found.values, found.lower, found.upper))
    own = own_effects(table, cells, values, _mean_effects(table, cells, values, weights))
    return _Parts(table, cells, values, lower, upper, own, weights / weights.sum())


def _mean_effects(model: TableModel, cells: Cells, values: Array, weights: Array) -> Array:
    """Return the mean effects stored in the model, which its explanations show, or else those of the rows."""
    if model.statistics is not None:
        return model.statistics.mean
    gate = MeanGate(model, mean_terms(model, slot_weights(cells, weights, model.schema.n_slots)))
    return mean_effects(gate, cells, values, weights)


def _metric(name: str, each: Array, overall: float, parts: _Parts) -> FeatureMetric:
    per_feature = dict(zip(parts.model.feature_names, (float(value) for value in each), strict=True))
    return FeatureMetric(name, overall, per_feature)
