"""Example rows of a model, made from its statistics of the training data: medians and frequent levels."""

from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.schema import Category, Feature
from nae.tables.model import TableModel

__all__ = ["example_row", "feature_examples"]


def example_row(model: TableModel) -> dict[str, Any]:
    """Return a typical row: the median of every number, the most frequent level of every category."""
    return {feature.name: feature_examples(model, i)[0] for i, feature in enumerate(model.schema.features)}


def feature_examples(model: TableModel, i: int) -> list[Any]:
    """Return up to three values of a feature, the most typical first."""
    feature = model.schema.features[i]
    if isinstance(feature, Category):
        return list(feature.levels[:3]) or [None]
    weight: Array = np.ones(feature.n_values)
    if model.statistics is not None:
        known = model.statistics.weight[model.schema.slots(i)][: feature.n_values]
        weight = known if known.sum() > 0 else weight
    if feature.is_boolean:
        return [bool(feature.knots[int(weight.argmax())])]
    share = np.cumsum(weight) / weight.sum()
    at = [int(np.searchsorted(share, quantile)) for quantile in (0.5, 0.25, 0.75)]
    found = [_number(feature, feature.knots[min(place, feature.n_values - 1)]) for place in at]
    return list(dict.fromkeys(found))


def _number(feature: Feature, value: float) -> float | int:
    rounded = float(f"{value:.6g}")
    return int(rounded) if getattr(feature, "integral", False) and rounded.is_integer() else rounded
