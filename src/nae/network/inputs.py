"""The inputs of the encoders: a vector per slot, (feature, slot, width), padded to the feature with most slots.

A knot of a number is encoded by its rank among the knots, as a position and as ramps (a piecewise-linear encoding). The
levels of a category are one-hot, and so is *missing*. The slot *unseen* has no input: its tables are filled in later.
"""

import numpy as np

from nae._typing import Array
from nae.encoding import Category, Columns, Number, Schema
from nae.encoding.columns import numbers

__all__ = ["piecewise_inputs", "quantile_inputs"]

_SPAN = 1.7  # a uniform rank on [-1.7, 1.7] has variance one


def piecewise_inputs(schema: Schema, n_ramps: int) -> Array:
    """Return positions and ramps for the knots of numbers, and one-hot vectors for levels and *missing*."""
    inputs, start = _blank_inputs(schema, n_dense=1 + n_ramps)
    for i, feature in enumerate(schema.features):
        if isinstance(feature, Number):
            n_knots = feature.n_values
            inputs[i, :n_knots, 0] = np.linspace(-_SPAN, _SPAN, n_knots) if n_knots > 1 else 0.0
            inputs[i, :n_knots, 1 : 1 + n_ramps] = _ramps(n_knots, n_ramps)
    return _drop_unused(_one_hot(schema, inputs, start))


def quantile_inputs(schema: Schema, columns: Columns, random: np.random.Generator) -> Array:
    """Return the quantile-normal position of every knot: the paper's input. Levels and *missing* are one-hot."""
    from sklearn.preprocessing import QuantileTransformer

    inputs, start = _blank_inputs(schema, n_dense=1)
    for i, feature in enumerate(schema.features):
        if not isinstance(feature, Number):
            continue
        values = numbers(columns.arrays[i], feature.name)
        values = values[~np.isnan(values)][:, None]
        if len(values) < 2 or feature.n_values == 1:
            continue
        # PAPER: the map is fitted on inputs with a little noise, so that ties do not make steps.
        # DIFF: never more than a hundredth of the spread; 1e-3 / std drowns columns measured on a small scale.
        spread = float(values.std())
        noise = min(1e-3 / max(spread, 1e-3), 1e-2 * spread)
        transformer = QuantileTransformer(
            n_quantiles=min(2000, len(values)),
            output_distribution="normal",
            subsample=1_000_000_000,
            random_state=int(random.integers(2**31)),
        )
        transformer.fit(values + noise * random.standard_normal(values.shape))
        inputs[i, : feature.n_values, 0] = transformer.transform(feature.knots[:, None])[:, 0]
    return _drop_unused(_one_hot(schema, inputs, start))


def _blank_inputs(schema: Schema, n_dense: int) -> tuple[Array, int]:
    n_levels = max((feature.n_values for feature in schema.features if isinstance(feature, Category)), default=0)
    n_slots = max(feature.n_slots for feature in schema.features)
    return np.zeros((len(schema), n_slots, n_dense + n_levels + 1)), n_dense


def _one_hot(schema: Schema, inputs: Array, start: int) -> Array:
    for i, feature in enumerate(schema.features):
        if isinstance(feature, Category):
            levels = np.arange(feature.n_values)
            inputs[i, levels, start + levels] = 1.0
        if feature.has_missing:
            inputs[i, feature.n_values, -1] = 1.0
    return inputs


def _ramps(n_knots: int, n_ramps: int) -> Array:
    edges = np.linspace(0.0, max(n_knots - 1, 1), n_ramps + 1)
    rank = np.arange(n_knots)[:, None]
    return np.clip((rank - edges[:-1]) / np.diff(edges), 0.0, 1.0)


def _drop_unused(inputs: Array) -> Array:
    used = np.abs(inputs).sum(axis=(0, 1)) > 0
    if not used.any():  # nothing but constant columns
        used[0] = True
    return np.ascontiguousarray(inputs[:, :, used])
