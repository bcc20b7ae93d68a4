"""The contributions of every single member of a model, and how far the members agree."""

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["agreement", "member_contributions"]


def member_contributions(model: TableModel, cells: Cells) -> Array:
    """Return the contributions of every single member, (row, feature, output, member), without clamps.

    Clamps hold for the mean over the members.
    """
    out = np.empty((len(cells), model.n_features, model.n_outputs, model.n_members))
    for rows, _, values in model.each(cells, lambda part: _of_members(model, part)):
        out[rows] = values
    return out


def _of_members(model: TableModel, cells: Cells) -> Array:
    experts = interpolate(model.experts, cells)  # (B, F, K, O, M)
    if model.n_experts == 1:
        return np.asarray(experts[:, :, 0])
    weights = model.routing.weights(model.gate.logits(cells))
    return np.asarray(np.einsum("bfkom,bkfm->bfom", experts, weights))


def agreement(values: Array, weights: Array) -> Array:
    """Return the variance-weighted mean correlation of (row, feature, output, member), as (feature, output)."""
    n_members = values.shape[-1]
    if n_members == 1:
        return np.ones(values.shape[1:3])
    share = weights / weights.sum()
    centred = values - np.tensordot(share, values, axes=1)
    each = np.tensordot(share, centred**2, axes=1).sum(axis=-1)  # (F, O)
    together = np.tensordot(share, centred.sum(axis=-1) ** 2, axes=1)
    # If no member uses a feature, they agree.
    delta = 1e-6 * np.tensordot(share, centred.mean(axis=-1).sum(axis=1) ** 2, axes=1) + 1e-300
    return np.asarray(((together - each) / (n_members - 1) + delta) / (each + delta))
