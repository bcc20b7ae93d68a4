"""Attribute a context shift to other features, by integrated gradients from the mean gate to the actual gate.

The shift of feature i in a row is ``c_i - E[c_i | x_i]``. The reference logits of i keep its own gate term and hold the
terms of all other features at their mean. On the straight path from the reference logits to the actual ones, each other
feature j moves the logits by its centred gate term. The part of j is this term times the mean gradient of the
contribution along the path. The parts sum to ``c_i`` minus the reference contribution. The difference between
``E[c_i | x_i]`` and the reference depends on the value ``x_i`` alone. It is subtracted from the parts in fixed shares,
so that they sum to the shift.

Gradients are those of the contributions without clamps. Where a clamp holds a contribution or its reference back, the
difference is divided among the parts by their size.
"""

from collections.abc import Callable, Iterator

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.explanation.members import member_contributions
from nae.explanation.reference import MeanGate
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel
from nae.tables.routing import SoftmaxRouting

__all__ = ["context_parts", "raw_parts", "row_chunks"]

_CHUNK = 2_000_000  # largest number of values in an array for a chunk of rows
# Gauss-Legendre points on [0, 1]. `_close` corrects the error of the quadrature.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


def row_chunks(model: TableModel, cells: Cells) -> Iterator[tuple[slice, Cells]]:
    """Yield the rows in chunks small enough for arrays of shape (row, feature, feature)."""
    width = max(model.gate.terms.shape[1], model.n_experts * model.n_outputs)
    per_row = model.n_features * (model.n_members * width + model.n_features * model.n_outputs)
    step = max(1, _CHUNK // per_row)
    for start in range(0, len(cells), step):
        rows = slice(start, start + step)
        yield rows, cells.take(rows)


def raw_parts(gate: MeanGate, cells: Cells) -> tuple[Array, Array, Array]:
    """Return the parts of a few rows, before the typical effect of each value is subtracted.

    Returns
    -------
    parts
        (row, feature, cause, output): by how much ``cause`` changed the contribution of ``feature``. The sum over the
        causes is ``values - reference``.
    values
        (row, feature, output), the contributions.
    reference
        (row, feature, output), the contributions under the mean gate.
    """
    model = gate.model
    values = model.clip(member_contributions(model, cells).mean(axis=-1), cells)
    reference = model.clip(gate.contributions(cells).mean(axis=-1, dtype=np.float64), cells)
    slopes = _hidden_slopes(gate, cells)  # (B, F, H, O, M)
    parts = _dot_terms(model, slopes, gate.centred_terms(cells))
    diagonal = np.arange(model.n_features)
    parts[:, diagonal, diagonal] = 0.0
    return _close(parts, values - reference), values, reference


def context_parts(gate: MeanGate, cells: Cells, own: Array, shares: Array) -> tuple[Array, Array]:
    """Return contributions (row, feature, output) and the parts of their shifts, (row, feature, cause, output).

    ``own`` is the mean effect of every value (row, feature, output). ``shares`` divides the typical effect of a value
    (feature, cause, output).
    """
    parts, values, reference = raw_parts(gate, cells)
    parts += shares * (reference - own)[:, :, None]
    return values, parts


def _close(parts: Array, total: Array) -> Array:
    """Make the parts sum to ``total`` exactly: spread the error of quadrature, or of a jump of the routing, by size."""
    size = np.abs(parts)
    sums = size.sum(axis=2, keepdims=True)
    left = total[:, :, None] - parts.sum(axis=2, keepdims=True)
    parts += left * np.divide(size, sums, out=np.zeros_like(size), where=sums > 0)
    return parts


def _hidden_slopes(gate: MeanGate, cells: Cells) -> Array:
    """Return the mean gradient of every contribution along its path, by the gate's hidden values: (B, F, H, O, M)."""
    model = gate.model
    experts = np.ascontiguousarray(interpolate(model.experts, cells).transpose(0, 2, 3, 1, 4))  # (B, K, O, F, M)
    if not model.gate.is_additive:
        return _deep_slopes(gate, cells, experts)
    start, end = gate.logits(cells), model.gate.logits(cells)
    slopes = np.zeros(experts.shape, dtype=experts.dtype)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        logits = start + (end - start) * start.dtype.type(node)
        slopes += _gradient(model, logits, experts) * slopes.dtype.type(weight)
    return _to_hidden(model)(slopes)


def _deep_slopes(gate: MeanGate, cells: Cells, experts: Array) -> Array:
    model = gate.model
    start = gate.own_hidden(cells)  # (B, F, H, M)
    way = model.gate.hidden(cells)[:, None] - start
    to_hidden = _to_hidden(model)
    out = np.zeros((*start.shape[:3], model.n_outputs, model.n_members), dtype=experts.dtype)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        hidden = start + way * start.dtype.type(node)
        slopes = to_hidden(_gradient(model, gate.mix(np.maximum(hidden, 0.0)), experts))
        out += np.where(hidden[:, :, :, None] > 0, slopes, 0.0) * out.dtype.type(weight)
    return out


def _gradient(model: TableModel, logits: Array, experts: Array) -> Array:
    """Return the derivative of the contributions with respect to the logits, (B, K, O, F, M).

    Equal routing has none, so the derivative of the softmax is used, as in training.
    """
    routing = model.routing if isinstance(model.routing, SoftmaxRouting) else SoftmaxRouting(model.n_experts)
    weights = routing.weights(logits)[:, :, None]
    mixed = (weights * experts).sum(axis=1, keepdims=True)
    return np.asarray(weights * (experts - mixed))


def _to_hidden(model: TableModel) -> Callable[[Array], Array]:
    """Return the map from gradients by logits (B, K, O, F, M) to gradients by hidden values (B, F, H, O, M)."""
    gate, mix = model.gate, model.gate.mix
    if mix is None:
        # Only the columns of the feature itself matter, so H is the number of its experts here.
        return lambda slopes: slopes.transpose(0, 3, 1, 2, 4)
    by_feature = mix.reshape(model.n_members, gate.terms.shape[1], model.n_experts, model.n_features)
    by_feature = by_feature.transpose(3, 0, 2, 1)  # (F, M, K, H)

    def apply(slopes: Array) -> Array:
        n_rows, _, n_outputs = slopes.shape[:3]
        rows = slopes.transpose(3, 4, 0, 2, 1).reshape(*by_feature.shape[:2], n_rows * n_outputs, model.n_experts)
        mixed = np.matmul(rows, by_feature).reshape(*by_feature.shape[:2], n_rows, n_outputs, -1)
        return np.asarray(mixed.transpose(2, 0, 4, 3, 1))

    return apply


def _dot_terms(model: TableModel, slopes: Array, terms: Array) -> Array:
    """Return slopes times centred gate terms, summed over hidden values and averaged over members: (B, F, F, O)."""
    n_rows, n_features = slopes.shape[:2]
    n_outputs, n_members = slopes.shape[3:]
    if model.gate.mix is None:
        by_cause = terms.reshape(n_rows, n_features, model.n_experts, n_features, n_members)  # (B, cause, K, F, M)
        left = by_cause.transpose(0, 3, 1, 2, 4).reshape(n_rows, n_features, n_features, -1)  # (B, F, cause, K*M)
        right = slopes.transpose(0, 1, 2, 4, 3).reshape(n_rows, n_features, -1, n_outputs)  # (B, F, K*M, O)
        found = np.matmul(left, right)
    else:
        causes = terms.reshape(n_rows, n_features, -1)  # (B, cause, H*M)
        by_output = slopes.transpose(0, 1, 3, 2, 4).reshape(n_rows, n_features * n_outputs, -1)
        product = np.matmul(by_output, causes.transpose(0, 2, 1))
        found = product.reshape(n_rows, n_features, n_outputs, n_features).transpose(0, 1, 3, 2)
    out: Array = found.astype(np.float64)
    out /= n_members
    return out
