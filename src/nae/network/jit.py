"""Compiled parts of a step on the CPU, forward and backward, each over a range that one thread may have to itself.

Import this module through :mod:`nae.network.kernels`; it needs numba. A table's members lie side by side, and eight of
them are one vector register, so their number is a constant of what is compiled; other inner loops are long. Nothing is
cached on disk: compiling takes some three seconds, once per process.
"""

from functools import lru_cache

import numpy as np
from numba import njit

from nae.tables.jit import exp_single

__all__ = ["norm_relu", "norm_relu_back", "route", "sum_terms", "sum_terms_back"]

_SUMS = {"contract", "reassoc", "nsz", "arcp"}  # fuse with a product, change the order, divide by multiplying
_ONE = np.float32(1.0)


@lru_cache(maxsize=8)
def route(n_members: int):  # type: ignore[no-untyped-def]
    """Return the forward and backward functions of interpolating experts and mixing them by a softmax.

    A range is one of features: each has its own part of the table and of every output.
    """

    @njit(nogil=True, error_model="numpy", fastmath=_SUMS)
    def forward(slot, fraction, weight, table, logits, first, last, out, routing, mean):  # type: ignore[no-untyped-def]
        """Fill contributions (B, O, F, M), routing (B, F, K, M) and its weighted sum over the rows (F, K, M).

        Slots and fractions are (B, F), the table (slot, K * O * M), logits (M, B, K, F).
        """
        n_experts, n_outputs = routing.shape[2], out.shape[1]
        tile = np.empty((last - first, n_experts, n_members), np.float32)
        scratch = np.empty((3, n_members), np.float32)
        most, total, mixed = scratch[0], scratch[1], scratch[2]
        for f in range(first, last):  # assigning a slice brings seconds of compiling for its error message
            for k in range(n_experts):
                for m in range(n_members):
                    mean[f, k, m] = 0
        for b in range(len(slot)):
            for k in range(n_experts):
                for f in range(first, last):
                    for m in range(n_members):
                        tile[f - first, k, m] = logits[m, b, k, f]
            for f in range(first, last):
                own, weights, share = tile[f - first], routing[b, f], mean[f]
                for m in range(n_members):
                    most[m] = own[0, m]
                for k in range(1, n_experts):
                    for m in range(n_members):
                        most[m] = max(most[m], own[k, m])
                for k in range(n_experts):
                    for m in range(n_members):
                        own[k, m] -= most[m]
                exp_single(own.reshape(-1))
                for m in range(n_members):
                    total[m] = 0
                for k in range(n_experts):
                    for m in range(n_members):
                        total[m] += own[k, m]
                for m in range(n_members):
                    total[m] = _ONE / total[m]
                for k in range(n_experts):
                    for m in range(n_members):
                        weights[k, m] = own[k, m] * total[m]
                        share[k, m] += weight[b] * weights[k, m]
                part = fraction[b, f]
                low, high = table[slot[b, f]], table[slot[b, f] + (1 if part > 0 else 0)]
                for o in range(n_outputs):
                    for m in range(n_members):
                        mixed[m] = 0
                    for k in range(n_experts):
                        for m in range(n_members):
                            i = (k * n_outputs + o) * n_members + m
                            mixed[m] += weights[k, m] * (low[i] + part * (high[i] - low[i]))
                    for m in range(n_members):
                        out[b, o, f, m] = mixed[m]

    @njit(nogil=True, error_model="numpy", fastmath=_SUMS)
    def backward(  # type: ignore[no-untyped-def]
        slot, fraction, weight, table, routing, d_out, d_mean, first, last, d_table, d_logits
    ):
        """Add to the gradient of the table, and fill that of the logits."""
        n_experts, n_outputs = routing.shape[2], d_out.shape[1]
        tile = np.empty((n_experts, n_members, last - first), np.float32)
        slope, common = np.empty((n_experts, n_members), np.float32), np.empty(n_members, np.float32)
        for b in range(len(slot)):
            for f in range(first, last):
                part, at = fraction[b, f], slot[b, f]
                rest, after = _ONE - part, at + (1 if part > 0 else 0)
                low, high, d_low, d_high = table[at], table[after], d_table[at], d_table[after]
                weights, share = routing[b, f], d_mean[f]
                for m in range(n_members):
                    common[m] = 0
                for k in range(n_experts):
                    for m in range(n_members):
                        slope[k, m] = weight[b] * share[k, m]
                    for o in range(n_outputs):
                        for m in range(n_members):
                            i, d = (k * n_outputs + o) * n_members + m, d_out[b, o, f, m]
                            slope[k, m] += d * (low[i] + part * (high[i] - low[i]))
                            d_low[i] += rest * (weights[k, m] * d)
                            d_high[i] += part * (weights[k, m] * d)
                    for m in range(n_members):
                        common[m] += weights[k, m] * slope[k, m]
                for k in range(n_experts):
                    for m in range(n_members):
                        tile[k, m, f - first] = weights[k, m] * (slope[k, m] - common[m])
            for k in range(n_experts):
                for m in range(n_members):
                    row = d_logits[m, b, k]
                    for f in range(first, last):
                        row[f] = tile[k, m, f - first]

    return forward, backward


@njit(nogil=True, error_model="numpy", fastmath=_SUMS)
def sum_terms(slot, fraction, terms, first, last, out):  # type: ignore[no-untyped-def]
    """Fill the sums (M, B, width) over the features of interpolated terms (M, slot, width), for a range of members."""
    width = terms.shape[2]
    for m in range(first, last):
        table = terms[m]
        for b in range(len(slot)):
            total = out[m, b]
            for j in range(width):
                total[j] = 0
            for f in range(slot.shape[1]):
                part, at = fraction[b, f], slot[b, f]
                low, high = table[at], table[at + (1 if part > 0 else 0)]
                for j in range(width):
                    total[j] += low[j] + part * (high[j] - low[j])


@njit(nogil=True, error_model="numpy", fastmath=_SUMS)
def sum_terms_back(slot, fraction, d_out, first, last, d_terms):  # type: ignore[no-untyped-def]
    """Add to the gradient of the terms of a range of members."""
    width = d_terms.shape[2]
    for m in range(first, last):
        table = d_terms[m]
        for f in range(slot.shape[1]):
            for b in range(len(slot)):
                part, at, row = fraction[b, f], slot[b, f], d_out[m, b]
                rest = _ONE - part
                low, high = table[at], table[at + (1 if part > 0 else 0)]
                for j in range(width):
                    low[j] += rest * row[j]
                    high[j] += part * row[j]


@njit(nogil=True, error_model="numpy", fastmath=_SUMS)
def norm_relu(linear, scale, shift, first, last, out, moments):  # type: ignore[no-untyped-def]
    """Fill ReLU(scale * norm(linear) + shift), and mean and reciprocal deviation of every row, for a range of groups.

    Linear is (group, row, width); a group is a feature of a member, with a scale and a shift of its own.
    """
    width = linear.shape[2]
    size = np.float32(width)
    for g in range(first, last):
        for n in range(linear.shape[1]):
            row, into = linear[g, n], out[g, n]
            mean, square = np.float32(0), np.float32(0)
            for j in range(width):
                mean += row[j]
            mean /= size
            for j in range(width):
                square += (row[j] - mean) * (row[j] - mean)
            rate = _ONE / np.sqrt(square / size + np.float32(1e-5))
            moments[g, n, 0], moments[g, n, 1] = mean, rate
            for j in range(width):
                into[j] = max((row[j] - mean) * rate * scale[g, j] + shift[g, j], np.float32(0))


@njit(nogil=True, error_model="numpy", fastmath=_SUMS)
def norm_relu_back(  # type: ignore[no-untyped-def]
    linear, scale, out, moments, d_out, first, last, d_linear, d_scale, d_shift
):
    """Fill the gradients of a range of groups."""
    width = linear.shape[2]
    size = np.float32(width)
    normal, slope = np.empty(width, np.float32), np.empty(width, np.float32)
    for g in range(first, last):
        for j in range(width):
            d_scale[g, j] = d_shift[g, j] = 0
        for n in range(linear.shape[1]):
            row, shown, given, into = linear[g, n], out[g, n], d_out[g, n], d_linear[g, n]
            mean, rate = moments[g, n, 0], moments[g, n, 1]
            along, level = np.float32(0), np.float32(0)
            for j in range(width):
                normal[j] = (row[j] - mean) * rate
                passed = given[j] if shown[j] > 0 else np.float32(0)
                d_shift[g, j] += passed
                d_scale[g, j] += passed * normal[j]
                slope[j] = passed * scale[g, j]
                level += slope[j]
                along += slope[j] * normal[j]
            level /= size
            along /= size
            for j in range(width):
                into[j] = rate * (slope[j] - level - normal[j] * along)
