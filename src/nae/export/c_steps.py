"""The steps of a model in C: for each its tables and functions, and its code within the loop over the members."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.tables.lowered import Clip, Mix, OneExpert, Step
from nae.tables.routing import EqualRouting, Routing, SoftmaxRouting
from nae.tables.steps import Multiply, OwnTerms, Rectify, SumTerms, Terms

__all__ = ["EMITTERS", "START", "Emitted", "array", "literal"]


@dataclass(frozen=True)
class Emitted:
    """A step in C."""

    name: str  # of the array that holds a member's values after the step
    size: str  # of that array
    code: str
    parts: tuple[str, ...] = ()  # what stands before the function


START = Emitted("", "", "")
"""What stands before the first step."""


def array(name: str, values: AnyArray, tail: str) -> str:
    """Return the definition of an array of rows; ``tail`` is the size of a row."""
    rows = values.reshape(len(values), -1)
    is_single = values.dtype == np.float32
    kind, digits, suffix = ("float", 9, "f") if is_single else ("double", 17, "")
    lines = ["{" + ",".join(literal(value, digits) + suffix for value in row.tolist()) + "}" for row in rows]
    return f"static const {kind} {name}[{len(rows)}]{tail} = {{\n" + ",\n".join(lines) + "\n};\n"


def literal(value: float, digits: int) -> str:
    """Return a number as a C literal with the given number of digits."""
    text = f"{value:.{digits}g}"
    return text if "." in text or "e" in text else f"{text}.0"


def _sum_terms(step: SumTerms, given: Emitted, out: str) -> Emitted:
    code = f"""
        double {out}[W];
        for (k = 0; k < W; k++) {out}[k] = bias[m][k];
        for (i = 0; i < F; i++)
            for (k = 0; k < W; k++) {out}[k] += {_TERM};"""
    return Emitted(out, "W", code, _term_tables(step, "W"))


def _own_terms(step: OwnTerms, given: Emitted, out: str) -> Emitted:
    code = f"""
        double {out}[L];
        for (k = 0; k < W; k++)
            for (i = 0; i < F; i++) {out}[k * F + i] = bias[m][k * F + i] + {_TERM};"""
    return Emitted(out, "L", code, _term_tables(step, "L"))


_TERM = "(1 - part[i]) * terms[slot[i]][m * W + k] + part[i] * terms[up[i]][m * W + k]"


def _term_tables(step: Terms, n_units: str) -> tuple[str, ...]:
    return (
        f"enum {{ W = {step.terms.shape[1]} }}; /* terms of a feature */\n",
        array("terms", step.terms.transpose(0, 2, 1), "[M * W]"),
        array("bias", step.bias.T, f"[{n_units}]"),
    )


def _rectify(step: Rectify, given: Emitted, out: str) -> Emitted:
    code = f"""
        for (k = 0; k < {given.size}; k++)
            if ({given.name}[k] < 0) {given.name}[k] = 0;"""
    return Emitted(given.name, given.size, code)


def _multiply(step: Multiply, given: Emitted, out: str) -> Emitted:
    """Multiply by the only matrix of the model: it gives the logits."""
    code = f"""
        double {out}[L];
        for (o = 0; o < L; o++) {out}[o] = mix_bias[m][o];
        for (k = 0; k < {given.size}; k++)
            for (o = 0; o < L; o++) {out}[o] += {given.name}[k] * mix[m * {given.size} + k][o];"""
    tables = array("mix", step.matrix.reshape(-1, step.matrix.shape[2]), "[L]"), array("mix_bias", step.bias.T, "[L]")
    return Emitted(out, "L", code, tables)


def _share(step: Routing, given: Emitted, out: str, *, raised: str) -> Emitted:
    """Turn logits into weights; ``raised`` is the share of an active expert before they sum to one.

    Of equal logits the first wins, so an expert is active if fewer than C others stand before it.
    """
    function = f"""
enum {{ C = {step.n_active} }}; /* active experts of a feature */

static void weigh(double *logits)
{{
    double weights[K], most = logits[0], total = 0;
    int k, j;
    for (k = 1; k < K; k++)
        if (logits[k * F] > most) most = logits[k * F];
    for (k = 0; k < K; k++) {{
        int before = 0;
        for (j = 0; j < K; j++)
            before += logits[j * F] > logits[k * F] || (logits[j * F] == logits[k * F] && j < k);
        weights[k] = before >= C ? 0 : {raised};
        total += weights[k];
    }}
    for (k = 0; k < K; k++) logits[k * F] = weights[k] / total;
}}
"""
    code = f"""
        for (i = 0; i < F; i++) weigh({given.name} + i);"""
    return Emitted(given.name, given.size, code, (function,))


def _one_expert(step: OneExpert, given: Emitted, out: str) -> Emitted:
    code = f"""
        double {out}[L];
        for (k = 0; k < L; k++) {out}[k] = 1;"""
    return Emitted(out, "L", code)


def _mix(step: Mix, given: Emitted, out: str) -> Emitted:
    """Add the member's contributions and bounds to the result, and after the last member put the bounds right."""
    code = f"""
        for (i = 0; i < F; i++) {{
            double values[K], lower, upper;
            for (o = 0; o < O; o++) {{
                double total = 0;
                for (k = 0; k < K; k++) {{
                    double low = experts[slot[i]][(m * K + k) * O + o], high = experts[up[i]][(m * K + k) * O + o];
                    values[k] = low + part[i] * (high - low);
                    total += {given.name}[k * F + i] * values[k];
                }}
                bound(values, &lower, &upper);
                result->contribution[i][o] += total / M;
                result->lower[i][o] += lower / M;
                result->upper[i][o] += upper / M;
            }}
        }}
    }}
    for (i = 0; i < F; i++)
        for (o = 0; o < O; o++) {{
            double value = result->contribution[i][o];
            if (result->lower[i][o] > value) result->lower[i][o] = value;
            if (result->upper[i][o] < value) result->upper[i][o] = value;
        }}"""
    tables = array("experts", step.experts.transpose(0, 3, 1, 2), "[M * K * O]")
    bound = _BOUND if step.n_extreme == 1 else f"\nenum {{ E = {step.n_extreme} }};\n{_MEAN_BOUND}"
    return Emitted("", "", code, (tables, bound))


def _clip(step: Clip, given: Emitted, out: str) -> Emitted:
    """Keep contributions and bounds within the range at their cell."""
    code = """
    for (i = 0; i < F; i++)
        for (o = 0; o < O; o++) {
            double low = clamp_lower[slot[i]][o], high = clamp_upper[slot[i]][o];
            low += part[i] * (clamp_lower[up[i]][o] - low);
            high += part[i] * (clamp_upper[up[i]][o] - high);
            clip(&result->contribution[i][o], low, high);
            clip(&result->lower[i][o], low, high);
            clip(&result->upper[i][o], low, high);
        }"""
    return Emitted(
        "", "", code, (array("clamp_lower", step.lower, "[O]"), array("clamp_upper", step.upper, "[O]"), _CLIP)
    )


_CLIP = """
static void clip(double *value, double low, double high)
{
    if (*value < low) *value = low;
    if (*value > high) *value = high;
}
"""
_BOUND = """
static void bound(const double *values, double *lower, double *upper)
{
    int k;
    *lower = *upper = values[0];
    for (k = 1; k < K; k++) {
        if (values[k] < *lower) *lower = values[k];
        if (values[k] > *upper) *upper = values[k];
    }
}
"""
_MEAN_BOUND = """
/* Bounds are means of the E smallest and of the E largest experts. */
static void bound(const double *values, double *lower, double *upper)
{
    int k, j;
    *lower = *upper = 0;
    for (k = 0; k < K; k++) {
        int rank = 0;
        for (j = 0; j < K; j++) rank += values[j] < values[k] || (values[j] == values[k] && j < k);
        if (rank < E) *lower += values[k] / E;
        if (rank >= K - E) *upper += values[k] / E;
    }
}
"""

EMITTERS: dict[type[Step], Callable[[Any, Emitted, str], Emitted]] = {
    SumTerms: _sum_terms,
    OwnTerms: _own_terms,
    Rectify: _rectify,
    Multiply: _multiply,
    SoftmaxRouting: partial(_share, raised="exp(logits[k * F] - most)"),
    EqualRouting: partial(_share, raised="1"),
    OneExpert: _one_expert,
    Mix: _mix,
    Clip: _clip,
}
"""Every step in C, given the step before it and the name for a new array."""
