"""The compiled kernel: cells to contributions, a few rows at a time so that everything stays in the cache.

Import this module through :mod:`nae.tables.kernel`; it needs numba. numpy's path stays the reference: the same
arithmetic in another order. Nothing is cached on disk: compiling takes seconds, once per process.

Inside a block of R rows an additive or diagonal gate's logits lie as (row, expert, feature * member); those of a
low-rank or deep gate as (expert, feature * row), one member after another. Both are (K, lanes) with long contiguous
lanes, which is what the compiler turns into vector instructions.
"""

import math
from functools import partial

import numpy as np
from numba import njit

__all__ = ["evaluate", "exp_double", "exp_single", "locate_numbers"]

_inner = partial(njit, nogil=True, error_model="numpy", no_cpython_wrapper=True)  # never called from Python
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_ROWS = 256  # rows of a block: they share what the gate's tables bring into the cache
_FEW = 64  # rows whose logits for one member stay in the cache
_LONE = 16  # fewer rows than this are computed one by one, with experts as lanes


@njit(nogil=True, error_model="numpy")
def exp_single(values, scale):  # type: ignore[no-untyped-def]
    """Raise float32 values of at most 0 in place, to the last two bits; ``scale`` is room for as many integers."""
    powers = scale.view(np.float32)
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
        values[i] = (p * r * r + r) + np.float32(1.0)
        scale[i] = (np.int32(n) + np.int32(127)) << np.int32(23)  # the bits of 2^n
    for i in range(len(values)):
        values[i] *= powers[i]


@njit(nogil=True, error_model="numpy")
def exp_double(values, scale):  # type: ignore[no-untyped-def]
    """Raise values in place."""
    for i in range(len(values)):
        values[i] = math.exp(values[i])


@_inner()
def _softmax(logits, most, scale, exp):  # type: ignore[no-untyped-def]
    """Turn (K, lanes) logits into weights in place; ``most`` has room for a number per lane."""
    n_experts, n_lanes = logits.shape
    for lane in range(n_lanes):
        most[lane] = logits[0, lane]
    for k in range(1, n_experts):
        row = logits[k]
        for lane in range(n_lanes):
            most[lane] = max(most[lane], row[lane])
    for k in range(n_experts):
        row = logits[k]
        for lane in range(n_lanes):
            row[lane] -= most[lane]
        exp(row, scale)
    for lane in range(n_lanes):
        most[lane] = logits[0, lane]
    for k in range(1, n_experts):
        row = logits[k]
        for lane in range(n_lanes):
            most[lane] += row[lane]
    for lane in range(n_lanes):
        most[lane] = 1 / most[lane]
    for k in range(n_experts):
        row = logits[k]
        for lane in range(n_lanes):
            row[lane] *= most[lane]


@_inner()
def _top(logits, n_active, is_equal):  # type: ignore[no-untyped-def]
    """Turn (K, lanes) logits into the weights of the ``n_active`` largest in place; of equal ones the first wins."""
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
        total = 0.0
        for k in range(n_experts):
            if not is_active[k]:
                logits[k, lane] = 0
            elif is_equal:
                logits[k, lane] = 1
            else:
                logits[k, lane] = math.exp(logits[k, lane] - most)
            total += logits[k, lane]
        for k in range(n_experts):
            logits[k, lane] /= total


@_inner()
def _route(logits, most, scale, exp, n_active, is_equal):  # type: ignore[no-untyped-def]
    if is_equal or n_active < logits.shape[0]:
        _top(logits, n_active, is_equal)
    else:
        _softmax(logits, most, scale, exp)


@_inner()
def _copy(source, target):  # type: ignore[no-untyped-def]
    """Assign a row; numba's own assignment brings seconds of compiling for its error message."""
    for i in range(len(source)):
        target[i] = source[i]


@_inner()
def _insert(ordered, size, value):  # type: ignore[no-untyped-def]
    """Put a value in its place among the first ``size`` ascending numbers."""
    while size > 0 and ordered[size - 1] > value:
        ordered[size] = ordered[size - 1]
        size -= 1
    ordered[size] = value


@_inner(fastmath={"contract", "reassoc"})
def _add_terms(slot, fraction, terms, hidden):  # type: ignore[no-untyped-def]
    """Add the interpolated gate terms of a block: a feature's table serves all rows before the next one's comes."""
    n_rows, n_features = slot.shape
    width = hidden.shape[1]
    for f in range(n_features):
        for r in range(n_rows):
            high = fraction[r, f]
            low = 1 - high
            own, table = hidden[r], terms[slot[r, f]]
            if high == 0:
                for j in range(width):
                    own[j] += table[j]
            else:
                upper = terms[slot[r, f] + 1]
                for j in range(width):
                    own[j] += low * table[j] + high * upper[j]


@_inner(fastmath={"contract", "reassoc"})
def _mix_rows(hidden, mix, bias, logits):  # type: ignore[no-untyped-def]
    """Fill logits (K * F, R), one member's, from hidden values (H, R): rows are the lanes, H is a multiple of 4."""
    width, n_rows = hidden.shape
    n_logits = len(logits)
    for j in range(n_logits):
        for r in range(n_rows):
            logits[j, r] = bias[j]
    for j in range(0, n_logits - 3, 4):
        for h in range(0, width, 4):
            a0, b0, c0, d0 = mix[h, j], mix[h + 1, j], mix[h + 2, j], mix[h + 3, j]
            a1, b1, c1, d1 = mix[h, j + 1], mix[h + 1, j + 1], mix[h + 2, j + 1], mix[h + 3, j + 1]
            a2, b2, c2, d2 = mix[h, j + 2], mix[h + 1, j + 2], mix[h + 2, j + 2], mix[h + 3, j + 2]
            a3, b3, c3, d3 = mix[h, j + 3], mix[h + 1, j + 3], mix[h + 2, j + 3], mix[h + 3, j + 3]
            for r in range(n_rows):
                w, x, y, z = hidden[h, r], hidden[h + 1, r], hidden[h + 2, r], hidden[h + 3, r]
                logits[j, r] += (a0 * w + b0 * x) + (c0 * y + d0 * z)
                logits[j + 1, r] += (a1 * w + b1 * x) + (c1 * y + d1 * z)
                logits[j + 2, r] += (a2 * w + b2 * x) + (c2 * y + d2 * z)
                logits[j + 3, r] += (a3 * w + b3 * x) + (c3 * y + d3 * z)
    for j in range(n_logits - n_logits % 4, n_logits):
        for h in range(width):
            for r in range(n_rows):
                logits[j, r] += mix[h, j] * hidden[h, r]


@_inner(fastmath={"contract", "reassoc"})
def _mix_one(hidden, mix, bias, logits):  # type: ignore[no-untyped-def]
    """Fill logits (K * F) of one row and member: logits are the lanes."""
    _copy(bias, logits)
    for h in range(0, len(hidden), 4):
        a, b, c, d = hidden[h], hidden[h + 1], hidden[h + 2], hidden[h + 3]
        one, two, three, four = mix[h], mix[h + 1], mix[h + 2], mix[h + 3]
        for j in range(len(logits)):
            logits[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])


@_inner()
def _blend(at, part, experts, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the experts of one cell, all members'."""
    low, high = experts[at], experts[at + (part > 0)]
    for i in range(len(out)):
        out[i] = low[i] + part * (high[i] - low[i])


@_inner(fastmath={"contract", "reassoc"})
def _combine(weights, experts, first, n_outputs, total):  # type: ignore[no-untyped-def]
    """Add weights (K, lanes) times experts (lanes, .), from number ``first`` on, to total (lanes, O)."""
    n_experts = len(weights)
    for lane in range(len(total)):
        own = experts[lane]
        for o in range(n_outputs):
            mixed = total[lane, o]
            for k in range(n_experts):
                mixed += weights[k, lane] * own[first + k * n_outputs + o]
            total[lane, o] = mixed


@_inner()
def _bound(experts, shape, rule, room, least, most):  # type: ignore[no-untyped-def]
    """Fill the mean over members of the extremes of the experts (M * K * O) of one cell, least and most (O)."""
    n_members, n_experts, n_outputs = shape
    n_active, is_equal = rule[1], rule[2]
    for o in range(n_outputs):
        low, high = 0.0, 0.0
        for m in range(n_members):
            first = m * n_experts * n_outputs + o
            a = b = experts[first]
            if is_equal:
                for k in range(n_experts):
                    _insert(room, k, experts[first + k * n_outputs])
                for k in range(n_active):
                    low += room[k] / n_active
                    high += room[n_experts - 1 - k] / n_active
                continue
            for k in range(1, n_experts):
                value = experts[first + k * n_outputs]
                a = min(a, value)
                b = max(b, value)
            low += a
            high += b
        least[o], most[o] = low / n_members, high / n_members


@_inner()
def _own_terms(slot, fraction, terms, shape, hidden):  # type: ignore[no-untyped-def]
    """Add each feature's own terms: a diagonal gate."""
    n_members, n_experts, _ = shape
    n_rows, n_features = slot.shape
    for r in range(n_rows):
        for f in range(n_features):
            high, at = fraction[r, f], slot[r, f]
            up = at + (high > 0)
            for k in range(n_experts):
                for m in range(n_members):
                    i = k * n_members + m
                    hidden[r, k * n_features * n_members + f * n_members + m] += (1 - high) * terms[
                        at, i
                    ] + high * terms[up, i]


@_inner()
def _mix_direct(experts, hidden, shape, rule, exp, values):  # type: ignore[no-untyped-def]
    """Contributions under an additive or diagonal gate; experts (R * F, .) of all rows."""
    n_members, n_experts, n_outputs = shape
    n_rows, n_features = values.shape[:2]
    n_lanes = n_features * n_members
    most, scale = np.empty(n_lanes, hidden.dtype), np.empty(n_lanes, np.int32)
    total = np.empty((n_lanes, n_outputs), hidden.dtype)
    for r in range(n_rows):
        weights = hidden[r].reshape(n_experts, n_lanes)
        _route(weights, most, scale, exp, rule[1], rule[2])
        for lane in range(n_lanes):
            for o in range(n_outputs):
                total[lane, o] = 0
        own = experts[r * n_features : (r + 1) * n_features].reshape(n_lanes, n_experts * n_outputs)
        _combine(weights, own, 0, n_outputs, total)
        for f in range(n_features):
            for o in range(n_outputs):
                mean = 0.0
                for m in range(n_members):
                    mean += total[f * n_members + m, o]
                values[r, f, o] = mean / n_members


@_inner()
def _mix_through(experts, hidden, mix, mix_bias, shape, rule, exp, values):  # type: ignore[no-untyped-def]
    """Contributions under a low-rank or deep gate; experts (F * R, .) of all rows."""
    n_members, n_experts, n_outputs = shape
    n_rows, n_features = values.shape[:2]
    width, n_lanes = mix.shape[1], n_features * n_rows
    turned = np.empty((width, n_rows), hidden.dtype)
    logits = np.empty((n_experts * n_features, n_rows), hidden.dtype)
    weights = logits.reshape(n_experts, n_lanes)
    most, scale = np.empty(n_lanes, hidden.dtype), np.empty(n_lanes, np.int32)
    total = np.zeros((n_lanes, n_outputs), hidden.dtype)
    for m in range(n_members):
        if n_rows == 1:
            _mix_one(hidden[0, m * width : (m + 1) * width], mix[m], mix_bias[m], logits.reshape(-1))
        else:
            for r in range(n_rows):
                for h in range(width):
                    turned[h, r] = hidden[r, m * width + h]
            _mix_rows(turned, mix[m], mix_bias[m], logits)
        _route(weights, most, scale, exp, rule[1], rule[2])
        _combine(weights, experts, m * n_experts * n_outputs, n_outputs, total)
    for f in range(n_features):
        for r in range(n_rows):
            for o in range(n_outputs):
                values[r, f, o] = total[f * n_rows + r, o] / n_members


@_inner()
def _finish(slot, fraction, hidden, tables, shape, rule, exp, values, lower, upper):  # type: ignore[no-untyped-def]
    """Fill contributions (R, F, O) of a few rows from their hidden values, and the bounds where they have rows."""
    experts, mix, mix_bias = tables[0], tables[3], tables[4]
    n_rows, n_features = slot.shape
    is_mixed = rule[0] >= 2
    blended = np.empty((n_rows * n_features, experts.shape[1]), experts.dtype)
    for r in range(n_rows):
        for f in range(n_features):
            i = f * n_rows + r if is_mixed else r * n_features + f
            _blend(slot[r, f], fraction[r, f], experts, blended[i])
    if is_mixed:
        _mix_through(blended, hidden, mix, mix_bias, shape, rule, exp, values)
    else:
        _mix_direct(blended, hidden, shape, rule, exp, values)
    if len(lower):
        room = np.empty(shape[1], experts.dtype)
        for r in range(n_rows):
            for f in range(n_features):
                i = f * n_rows + r if is_mixed else r * n_features + f
                _bound(blended[i], shape, rule, room, lower[r, f], upper[r, f])


@_inner()
def _block(slot, fraction, tables, shape, rule, exp, values, lower, upper):  # type: ignore[no-untyped-def]
    """Fill contributions (R, F, O) of a block of rows, and the bounds where they have rows."""
    terms, bias = tables[1], tables[2]
    n_rows = len(slot)
    hidden = np.empty((n_rows, len(bias)), terms.dtype)
    for r in range(n_rows):
        _copy(bias, hidden[r])
    if rule[0] == 1:
        _own_terms(slot, fraction, terms, shape, hidden)
    elif shape[1] > 1:
        _add_terms(slot, fraction, terms, hidden)
    if rule[0] == 3:
        for r in range(n_rows):
            own = hidden[r]
            for j in range(len(own)):
                own[j] = max(own[j], 0)
    for start in range(0, n_rows, _FEW):
        end = min(start + _FEW, n_rows)
        least, most = (lower[start:end], upper[start:end]) if len(lower) else (lower, upper)
        own = hidden[start:end]
        _finish(slot[start:end], fraction[start:end], own, tables, shape, rule, exp, values[start:end], least, most)


@_inner()
def _evaluate_block(start, end, cells, tables, shape, rule, exp, out):  # type: ignore[no-untyped-def]
    """Compute rows ``start`` to ``end``: their scores, and where there is room their contributions and bounds."""
    slot, fraction = cells
    score, values, lower, upper = out
    if len(values):
        own = values[start:end]
        least, most = (lower[start:end], upper[start:end]) if len(lower) else (lower, upper)
    else:
        own, least, most = np.empty((end - start, slot.shape[1], score.shape[1])), lower, upper
    _block(slot[start:end], fraction[start:end], tables, shape, rule, exp, own, least, most)
    for r in range(end - start):
        for f in range(slot.shape[1]):
            for o in range(score.shape[1]):
                score[start + r, o] += own[r, f, o]
                if len(lower):
                    least[r, f, o] = min(least[r, f, o], own[r, f, o])
                    most[r, f, o] = max(most[r, f, o], own[r, f, o])


@njit(nogil=True, error_model="numpy")
def evaluate(cells, tables, shape, rule, exp, out):  # type: ignore[no-untyped-def]
    """Compute all rows, without the interpreter's lock: several threads may share them out."""
    n_rows = len(cells[0])
    step = 1 if n_rows < _LONE else _ROWS
    for start in range(0, n_rows, step):
        _evaluate_block(start, min(start + step, n_rows), cells, tables, shape, rule, exp, out)


@njit(nogil=True, error_model="numpy")
def locate_numbers(values, knots, firsts, offsets, columns, slot, fraction):  # type: ignore[no-untyped-def]
    """Fill slots and fractions of the number features from float64 values (row, number)."""
    for row in range(len(values)):
        for i in range(len(columns)):
            value = values[row, i]
            own = knots[firsts[i] : firsts[i + 1]]
            n, part = len(own), 0.0
            if math.isnan(value):
                low = n
            elif value >= own[n - 1]:
                low = n - 1
            elif value <= own[0]:
                low = 0
            else:
                low, high = 0, n - 1
                while high - low > 1:
                    middle = (low + high) >> 1
                    if own[middle] <= value:
                        low = middle
                    else:
                        high = middle
                span = own[low + 1] - own[low]
                if np.isinf(span):  # beyond the largest float
                    part = (value / 2 - own[low] / 2) / (own[low + 1] / 2 - own[low] / 2)
                else:
                    part = (value - own[low]) / span
            slot[row, columns[i]] = offsets[columns[i]] + low
            fraction[row, columns[i]] = part
            if fraction[row, columns[i]] >= 1:  # rounded up to the next knot
                slot[row, columns[i]] += 1
                fraction[row, columns[i]] = 0
