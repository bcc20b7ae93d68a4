"""Random models that remember random rows, as a fitted one remembers its training rows."""

from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding import Columns
from nae.explanation import with_statistics
from nae.tables import TableModel
from tests.laws.models import make_model, make_table

__all__ = ["explained_model", "raw_part_oracle", "remembering"]


def remembering(model: TableModel, seed: int = 0, n_rows: int = 60) -> TableModel:
    """Return the model with statistics of random rows."""
    return with_statistics(model, make_table(np.random.default_rng(seed), model.schema, n_rows))


def explained_model(seed: int = 0, **shape: Any) -> tuple[TableModel, Columns]:
    """Return a random model with statistics, and other rows to explain."""
    random = np.random.default_rng(seed)
    model = remembering(make_model(random, **shape), seed)
    return model, make_table(random, model.schema, 12)


def raw_part_oracle(model: TableModel, columns: Columns, *, steps: int = 4000) -> Array:
    """Return (row, feature, cause, output): integrated gradients by the midpoint rule and finite differences.

    Written from the definition, row by row and member by member; one experts' softmax at a time.
    """
    assert model.statistics is not None
    cells, gate = model.cells(columns), model.gate
    n_rows, n_features = cells.slot.shape
    out = np.zeros((n_rows, n_features, n_features, model.n_outputs))
    at = (np.arange(steps) + 0.5) / steps
    for row in range(n_rows):
        fraction = cells.fraction[row, :, None, None]
        terms = gate.terms[cells.slot[row]] * (1 - fraction) + gate.terms[cells.upper[row]] * fraction  # (F, H, M)
        delta = terms - model.statistics.gate_mean
        blend = fraction[..., None]
        experts = model.experts[cells.slot[row]] * (1 - blend) + model.experts[cells.upper[row]] * blend
        for i in range(n_features):
            others = [j for j in range(n_features) if j != i]
            end = gate.bias + terms.sum(axis=0)
            way = delta[others].sum(axis=0)
            for j in others:
                for m in range(model.n_members):
                    path = end[:, m] - (1 - at[:, None]) * way[:, m]
                    step = 1e-5
                    high = _contribution(model, path + step * delta[j, :, m], experts[i, :, :, m], i, m)
                    low = _contribution(model, path - step * delta[j, :, m], experts[i, :, :, m], i, m)
                    out[row, i, j] += (high - low).mean(axis=0) / (2 * step) / model.n_members
    return out


def _contribution(model: TableModel, hidden: Array, experts: Array, i: int, m: int) -> Array:
    gate = model.gate
    if gate.mix is None or gate.mix_bias is None:
        logits = hidden.reshape(len(hidden), model.n_experts, model.n_features)[:, :, i]
    else:
        active = np.maximum(hidden, 0.0) if gate.kind == "deep" else hidden
        every = active @ gate.mix[m] + gate.mix_bias[:, m]
        logits = every.reshape(len(hidden), model.n_experts, model.n_features)[:, :, i]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights @ experts)
