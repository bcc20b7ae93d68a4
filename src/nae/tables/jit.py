"""The compiled kernel: from values to cells, and from cells to contributions, one block of rows at a time.

Import this module through :mod:`nae.tables.kernel`; it needs numba. The reference is the computation in numpy. The
kernel does the same arithmetic in another order. Compiling takes seconds, once per process; nothing is stored on disk.

Cells come as (feature, row). A row's logits lie as (expert, lane), where a lane is a feature of a member: long
contiguous lanes are what the compiler turns into vector instructions. Members share one group of lanes, unless
their gate has a matrix: then each member is a group of its own, because each has its own matrix.

All numbers keep the type of the tables. numba computes a single-precision number minus an integer in double
precision, so ``1 - fraction`` alone would halve the speed of a loop.
"""

import math
from functools import partial

import numpy as np
from numba import njit

__all__ = ["evaluate", "exp_double", "exp_single", "locate_numbers"]

_inner = partial(njit, nogil=True, error_model="numpy", no_cpython_wrapper=True)  # never called from Python
_SUMS = {"contract", "reassoc"}  # sums may be fused with products and reordered
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_FEW, _MANY = 256, 1280  # rows of a block: more for large tables, so that more rows share what is in the cache
_PER_ROW = 4096  # numbers in the tables of the gate per row of a block


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def exp_single(values):  # type: ignore[no-untyped-def]
    """Exponentiate non-positive float32 values in place. The last two bits may differ."""
    for i in range(len(values)):
        x = max(values[i], np.float32(-87.0))
        n = np.floor(x * _LOG2E + np.float32(0.5))
        r = (x - n * _LN2_HIGH) - n * _LN2_LOW
        p = np.float32(1.9875691500e-4)  # the minimax polynomial of e^r on [-ln 2 / 2, ln 2 / 2]
        p = p * r + np.float32(1.3981999507e-3)
        p = p * r + np.float32(8.3334519073e-3)
        p = p * r + np.float32(4.1665795894e-2)
        p = p * r + np.float32(1.6666665459e-1)
        p = p * r + np.float32(5.0000001201e-1)
        p = (p * r * r + r) + np.float32(1.0)
        power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)  # 2^n, by its bits
        values[i] = p * power


@njit(nogil=True, error_model="numpy")
def exp_double(values):  # type: ignore[no-untyped-def]
    """Exponentiate values in place."""
    for i in range(len(values)):
        values[i] = math.exp(values[i])


@_inner()
def _copy(source, target):  # type: ignore[no-untyped-def]
    """Assign a row. The assignment of numba takes seconds to compile, because of its error message."""
    for i in range(len(source)):
        target[i] = source[i]


@_inner(fastmath=_SUMS)
def _softmax(logits, most, total, exp):  # type: ignore[no-untyped-def]
    """Turn (K, lanes) logits into weights that sum to ``total`` (lanes)."""
    n_experts, n_lanes = logits.shape
    _copy(logits[0], most)
    for k in range(1, n_experts):
        row = logits[k]
        for lane in range(n_lanes):
            most[lane] = max(most[lane], row[lane])
    for k in range(n_experts):
        row = logits[k]
        for lane in range(n_lanes):
            row[lane] -= most[lane]
    exp(logits.reshape(-1))
    _copy(logits[0], total)
    for k in range(1, n_experts):
        row = logits[k]
        for lane in range(n_lanes):
            total[lane] += row[lane]


@_inner()
def _top(logits, total, n_active, is_equal):  # type: ignore[no-untyped-def]
    """Turn (K, lanes) logits into weights. Only the ``n_active`` largest count; of equal logits the first wins."""
    n_experts, n_lanes = logits.shape
    is_active = np.empty(n_experts, np.bool_)
    for lane in range(n_lanes):
        for k in range(n_experts):
            is_active[k] = False
        most = logits[0, lane]
        for rank in range(n_active):
            best = -1
            for k in range(n_experts):
                if not is_active[k] and (best < 0 or logits[k, lane] > logits[best, lane]):
                    best = k
            is_active[best] = True
            if rank == 0:
                most = logits[best, lane]
        total[lane] = 0
        for k in range(n_experts):
            if not is_active[k]:
                logits[k, lane] = 0
            elif is_equal:
                logits[k, lane] = 1
            else:
                logits[k, lane] = math.exp(logits[k, lane] - most)
            total[lane] += logits[k, lane]


@_inner(fastmath=_SUMS)
def _add_terms(slot, fraction, start, terms, hidden):  # type: ignore[no-untyped-def]
    """Add the interpolated gate terms of a block, four features at a time, so that their tables stay in the cache."""
    n_rows, width = hidden.shape
    n_fours = len(slot) - len(slot) % 4
    for f in range(0, n_fours, 4):
        for r in range(n_rows):
            i = start + r
            a, b, c, d = fraction[f, i], fraction[f + 1, i], fraction[f + 2, i], fraction[f + 3, i]
            s, t, u, v = slot[f, i], slot[f + 1, i], slot[f + 2, i], slot[f + 3, i]
            low_a, low_b, low_c, low_d = terms[s], terms[t], terms[u], terms[v]
            high_a, high_b, high_c, high_d = terms[s + 1], terms[t + 1], terms[u + 1], terms[v + 1]
            own = hidden[r]
            for j in range(width):
                one = low_a[j] + a * (high_a[j] - low_a[j])
                two = low_b[j] + b * (high_b[j] - low_b[j])
                three = low_c[j] + c * (high_c[j] - low_c[j])
                four = low_d[j] + d * (high_d[j] - low_d[j])
                own[j] += (one + two) + (three + four)
    for f in range(n_fours, len(slot)):
        for r in range(n_rows):
            s, a = slot[f, start + r], fraction[f, start + r]
            low, high, own = terms[s], terms[s + 1], hidden[r]
            for j in range(width):
                own[j] += low[j] + a * (high[j] - low[j])


@_inner()
def _own_terms(slot, fraction, start, terms, shape, hidden):  # type: ignore[no-untyped-def]
    """Add the terms (K, M) of each feature to its own logits."""
    _, n_members, n_experts, _ = shape
    n_lanes = len(slot) * n_members
    for r in range(len(hidden)):
        for f in range(len(slot)):
            s, a = slot[f, start + r], fraction[f, start + r]
            low, high = terms[s], terms[s + 1]
            for k in range(n_experts):
                for m in range(n_members):
                    i = k * n_members + m
                    hidden[r, k * n_lanes + f * n_members + m] += low[i] + a * (high[i] - low[i])


@_inner(fastmath=_SUMS)
def _mix_four(hidden, first, mix, bias, logits):  # type: ignore[no-untyped-def]
    """Fill logits (4, K * F) of four rows from their hidden numbers ``first`` on; mix (H, K * F), H a multiple of 4."""
    one, two, three, four = logits[0], logits[1], logits[2], logits[3]
    for j in range(len(bias)):
        one[j] = two[j] = three[j] = four[j] = bias[j]
    for h in range(0, len(mix), 4):
        i = first + h
        a1, b1, c1, d1 = hidden[0, i], hidden[0, i + 1], hidden[0, i + 2], hidden[0, i + 3]
        a2, b2, c2, d2 = hidden[1, i], hidden[1, i + 1], hidden[1, i + 2], hidden[1, i + 3]
        a3, b3, c3, d3 = hidden[2, i], hidden[2, i + 1], hidden[2, i + 2], hidden[2, i + 3]
        a4, b4, c4, d4 = hidden[3, i], hidden[3, i + 1], hidden[3, i + 2], hidden[3, i + 3]
        mix_a, mix_b, mix_c, mix_d = mix[h], mix[h + 1], mix[h + 2], mix[h + 3]
        for j in range(len(bias)):
            w, x, y, z = mix_a[j], mix_b[j], mix_c[j], mix_d[j]
            one[j] += (a1 * w + b1 * x) + (c1 * y + d1 * z)
            two[j] += (a2 * w + b2 * x) + (c2 * y + d2 * z)
            three[j] += (a3 * w + b3 * x) + (c3 * y + d3 * z)
            four[j] += (a4 * w + b4 * x) + (c4 * y + d4 * z)


@_inner(fastmath=_SUMS)
def _mix_one(hidden, first, mix, bias, logits):  # type: ignore[no-untyped-def]
    """Fill logits (K * F) of one row."""
    _copy(bias, logits)
    for h in range(0, len(mix), 4):
        a, b, c, d = hidden[first + h], hidden[first + h + 1], hidden[first + h + 2], hidden[first + h + 3]
        one, two, three, four = mix[h], mix[h + 1], mix[h + 2], mix[h + 3]
        for j in range(len(bias)):
            logits[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])


@_inner(fastmath=_SUMS)
def _blend(cells, row, experts, line, lanes):  # type: ignore[no-untyped-def]
    """Fill the experts of a row's cells, (K * O, lanes); ``line`` has room for one cell's, (members * K * O)."""
    slot, fraction = cells
    n_members = lanes.shape[1] // len(slot)
    for f in range(len(slot)):
        at, part = slot[f, row], fraction[f, row]
        low, high = experts[at], experts[at + 1]
        for i in range(len(line)):
            line[i] = low[i] + part * (high[i] - low[i])
        for m in range(n_members):
            for q in range(len(lanes)):
                lanes[q, f * n_members + m] = line[m * len(lanes) + q]


@_inner(fastmath=_SUMS)
def _add_members(lanes, o, out):  # type: ignore[no-untyped-def]
    """Add the lanes of a group's members to a column of ``out`` (F, O)."""
    n_members = len(lanes) // len(out)
    for f in range(len(out)):
        for m in range(n_members):
            out[f, o] += lanes[f * n_members + m]


@_inner(fastmath=_SUMS)
def _combine(weights, total, experts, mixed, values):  # type: ignore[no-untyped-def]
    """Add the contributions of a group of members to those of a row (F, O)."""
    n_outputs = values.shape[1]
    for o in range(n_outputs):
        for lane in range(len(mixed)):
            mixed[lane] = 0
        for k in range(len(weights)):
            weight, expert = weights[k], experts[k * n_outputs + o]
            for lane in range(len(mixed)):
                mixed[lane] += weight[lane] * expert[lane]
        for lane in range(len(mixed)):
            mixed[lane] /= total[lane]
        _add_members(mixed, o, values)


@_inner()
def _sort(experts, o, n_outputs):  # type: ignore[no-untyped-def]
    """Put every lane's experts for an output in ascending order."""
    for lane in range(experts.shape[1]):
        for last in range(n_outputs + o, len(experts), n_outputs):
            k, value = last, experts[last, lane]
            while k > o and experts[k - n_outputs, lane] > value:
                experts[k, lane] = experts[k - n_outputs, lane]
                k -= n_outputs
            experts[k, lane] = value


@_inner()
def _bound(experts, n_extreme, extreme, lower, upper):  # type: ignore[no-untyped-def]
    """Add the extreme experts of a group of members to the bounds of a row (F, O). The experts may be reordered."""
    n_outputs = lower.shape[1]
    for o in range(n_outputs):
        if n_extreme > 1:
            _sort(experts, o, n_outputs)
            for i in range(n_extreme):
                for k, out in ((i, lower), (len(experts) // n_outputs - 1 - i, upper)):
                    for lane in range(len(extreme)):
                        extreme[lane] = experts[k * n_outputs + o, lane] / n_extreme
                    _add_members(extreme, o, out)
            continue
        _copy(experts[o], extreme)
        for q in range(n_outputs + o, len(experts), n_outputs):
            expert = experts[q]
            for lane in range(len(extreme)):
                extreme[lane] = min(extreme[lane], expert[lane])
        _add_members(extreme, o, lower)
        _copy(experts[o], extreme)
        for q in range(n_outputs + o, len(experts), n_outputs):
            expert = experts[q]
            for lane in range(len(extreme)):
                extreme[lane] = max(extreme[lane], expert[lane])
        _add_members(extreme, o, upper)


@_inner()
def _add_row(cells, row, experts, logits, rule, exp, room, out):  # type: ignore[no-untyped-def]
    """Add the contributions of a group to those of one row, and its bounds to the bounds, if there is room for them."""
    most, total, line, lanes = room
    values, lower, upper = out
    n_experts = len(lanes) // values.shape[1]
    weights = logits.reshape(n_experts, len(total))
    if rule.is_equal or rule.n_active < n_experts:
        _top(weights, total, rule.n_active, rule.is_equal)
    else:
        _softmax(weights, most, total, exp)
    _blend(cells, row, experts, line, lanes)
    _combine(weights, total, lanes, most, values)
    if len(lower):
        _bound(lanes, rule.n_extreme, most, lower, upper)


@_inner()
def _hidden(cells, start, n_rows, tables, shape, rule):  # type: ignore[no-untyped-def]
    """Return the values of the gate for a block of rows, before the matrix if there is one, (R, .)."""
    slot, fraction = cells
    terms, bias = tables[1], tables[2]
    hidden = np.empty((n_rows, len(bias)), terms.dtype)
    for r in range(n_rows):
        _copy(bias, hidden[r])
    if rule.has_own_terms:
        _own_terms(slot, fraction, start, terms, shape, hidden)
    elif rule.has_sums:
        _add_terms(slot, fraction, start, terms, hidden)
    if rule.rectifies:
        for r in range(n_rows):
            for j in range(len(bias)):
                hidden[r, j] = max(hidden[r, j], 0)
    return hidden


@_inner()
def _block(cells, start, n_rows, tables, shape, rule, exp, values, lower, upper):  # type: ignore[no-untyped-def]
    """Sum the contributions of the members for a block of rows, (R, F, O), and the bounds if there is room for them."""
    experts, mix, mix_bias = tables[0], tables[3], tables[4]
    n_groups, n_members, n_experts, n_outputs = shape
    hidden = _hidden(cells, start, n_rows, tables, shape, rule)
    n_lanes, dtype = len(cells[0]) * n_members, hidden.dtype
    most, total = np.empty(n_lanes, dtype), np.empty(n_lanes, dtype)
    room = (most, total, np.empty(experts.shape[2], dtype), np.empty((n_experts * n_outputs, n_lanes), dtype))
    logits = np.empty((4, mix_bias.shape[1]), dtype)
    no_bounds = np.empty((0, 0))
    for g in range(n_groups):
        for r in range(n_rows):
            out = (values[r], lower[r], upper[r]) if len(lower) else (values[r], no_bounds, no_bounds)
            own = hidden[r]
            if rule.multiplies:
                first = g * mix.shape[1]
                if r % 4 == 0 and r + 4 <= n_rows:
                    _mix_four(hidden[r : r + 4], first, mix[g], mix_bias[g], logits)
                elif r + 4 - r % 4 > n_rows:
                    _mix_one(own, first, mix[g], mix_bias[g], logits[r % 4])
                own = logits[r % 4]
            _add_row(cells, start + r, experts[g], own, rule, exp, room, out)


@_inner()
def _clip(cells, row, clamps, out):  # type: ignore[no-untyped-def]
    """Keep the contributions of a row (F, O), or their bounds, within the clamps (T + 1, ends of every output)."""
    slot, fraction = cells
    n_outputs = out.shape[1]
    for f in range(len(out)):
        low, high, part = clamps[slot[f, row]], clamps[slot[f, row] + 1], fraction[f, row]
        for o in range(n_outputs):
            p = n_outputs + o
            least, most = low[o] + part * (high[o] - low[o]), low[p] + part * (high[p] - low[p])
            out[f, o] = min(max(out[f, o], least), most)


@njit(nogil=True, error_model="numpy")
def evaluate(cells, tables, shape, rule, exp, out):  # type: ignore[no-untyped-def]
    """Compute the scores of all rows, and contributions and bounds if there is room for them.

    The lock of the interpreter is not held, so several threads may divide the rows among themselves.
    """
    score, values, lower, upper = out
    n_features, n_members = len(cells[0]), shape[0] * shape[1]
    n_blocks = max(1, -(-len(score) // min(max(tables[1].size // _PER_ROW, _FEW), _MANY)))
    for block in range(n_blocks):
        start, end = block * len(score) // n_blocks, (block + 1) * len(score) // n_blocks
        own = values[start:end] if len(values) else np.zeros((end - start, n_features, score.shape[1]))
        least, most = (lower[start:end], upper[start:end]) if len(lower) else (lower, upper)
        _block(cells, start, end - start, tables, shape, rule, exp, own, least, most)
        for r in range(end - start):
            for f in range(n_features):
                for o in range(score.shape[1]):
                    own[r, f, o] /= n_members
                    if len(lower):
                        least[r, f, o] = min(least[r, f, o] / n_members, own[r, f, o])
                        most[r, f, o] = max(most[r, f, o] / n_members, own[r, f, o])
            if len(tables[5]):
                _clip(cells, start + r, tables[5], own[r])
                if len(lower):
                    _clip(cells, start + r, tables[5], least[r])
                    _clip(cells, start + r, tables[5], most[r])
            for f in range(n_features):
                for o in range(score.shape[1]):
                    score[start + r, o] += own[r, f, o]


@_inner()
def _search(values, knots, low):  # type: ignore[no-untyped-def]
    """Find the last knot at or below every value, or 0 if there is none. Each step of the search does all rows."""
    for row in range(len(values)):
        low[row] = 0
    n = len(knots)
    while n > 1:
        half = n >> 1
        for row in range(len(values)):
            at = low[row]
            low[row] = at + np.int32(half) if knots[at + half] <= values[row] else at
        n -= half


@njit(nogil=True, error_model="numpy")
def locate_numbers(values, knots, firsts, offsets, slot, fraction):  # type: ignore[no-untyped-def]
    """Fill slots and fractions (number, row) from float64 values (number, row)."""
    for i in range(len(values)):
        own, mine, at, part = knots[firsts[i] : firsts[i + 1]], values[i], slot[i], fraction[i]
        last = len(own) - 1
        _search(mine, own, at)
        for row in range(len(mine)):
            value, low, share = mine[row], at[row], 0.0
            if low < last and value > own[low]:
                span = own[low + 1] - own[low]
                share = (value - own[low]) / span
                if math.isinf(span):  # beyond the largest float
                    share = (value / 2 - own[low] / 2) / (own[low + 1] / 2 - own[low] / 2)
            elif math.isnan(value):
                low = last + 1
            part[row] = share
            if part[row] >= 1:  # rounded up to the next knot
                low += 1
                part[row] = 0
            at[row] = offsets[i] + low
