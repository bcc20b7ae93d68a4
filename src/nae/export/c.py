"""A model as C: one header and one source file, C99, without allocation and without anything but the maths library."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nae._files import write_whole
from nae._typing import AnyArray
from nae.encoding.schema import Category, Number
from nae.errors import UserError
from nae.export.source import model_of
from nae.tables.model import TableModel

__all__ = ["CSource", "to_c", "write_c"]

_KEYWORDS = frozenset(
    {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
        "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
        "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while",
    }
)  # fmt: skip
# What the header's readers may not call a field: later words of C, those of C++, and macros of the headers in use.
_TAKEN = _KEYWORDS | frozenset(
    {
        "NAN", "INFINITY", "NULL", "HUGE_VAL", "asm", "linux", "unix",
        "alignas", "alignof", "bool", "constexpr", "false", "nullptr", "static_assert", "thread_local", "true",
        "typeof", "typeof_unqual",
        "and", "and_eq", "bitand", "bitor", "catch", "char16_t", "char32_t", "char8_t", "class", "co_await",
        "co_return", "co_yield", "compl", "concept", "const_cast", "consteval", "constinit", "decltype", "delete",
        "dynamic_cast", "explicit", "export", "friend", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
        "operator", "or", "or_eq", "private", "protected", "public", "reinterpret_cast", "requires", "static_cast",
        "template", "this", "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq",
    }
)  # fmt: skip


@dataclass(frozen=True)
class CSource:
    """The two files of a model, and the C name of every feature's field."""

    header: str
    source: str
    fields: tuple[str, ...]


def to_c(model: Any, name: str = "model") -> CSource:
    """Return a model (or a fitted estimator) as C.

    Parameters
    ----------
    model
        A TableModel or a fitted estimator.
    name
        What everything is called: ``<name>_row``, ``<name>_result``, ``<name>_predict``. A C identifier.
    """
    tables = model_of(model)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in _KEYWORDS:
        raise UserError(f"name must be a C identifier; got {name!r}.")
    fields = _field_names(tables.feature_names, name.upper())
    return CSource(_header(tables, name, fields), _source(tables, name, fields), fields)


def write_c(model: Any, folder: str | os.PathLike[str], *, name: str = "model") -> tuple[Path, Path]:
    """Write ``<name>.h`` and ``<name>.c`` into a folder and return their paths."""
    found = to_c(model, name)
    header, source = Path(folder) / f"{name}.h", Path(folder) / f"{name}.c"
    write_whole(header, found.header)
    write_whole(source, found.source)
    return header, source


def _field_names(names: tuple[str, ...], big: str) -> tuple[str, ...]:
    """Return a C identifier per feature, as near to its name as C and C++ allow; ``big`` begins the header's macros."""
    taken = _TAKEN | {f"{big}_{end}" for end in ("H", "FEATURES", "OUTPUTS", "PREDICTIONS")}
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = f"x{plain}" if not plain or plain[0].isdigit() or plain[0] == "_" or plain in taken else plain
        field, n = plain, 2
        while field in found:
            field, n = f"{plain}_{n}", n + 1
        found.append(field)
    return tuple(found)


def _header(model: TableModel, name: str, fields: tuple[str, ...]) -> str:
    big, width = name.upper(), _prediction_width(model)
    lines = [
        f"{'double ' if isinstance(feature, Number) else 'const char *'}{field}; /* {_comment(feature.name)} */"
        for feature, field in zip(model.schema.features, fields, strict=True)
    ]
    row = "\n    ".join(lines)
    meaning = "probability of every class" if model.classes else "predicted target"
    return f"""/* A model of {model.n_features} features. Compile {name}.c as C99 and link the maths library. */
#ifndef {big}_H
#define {big}_H

#ifdef __cplusplus
extern "C" {{
#endif

#define {big}_FEATURES {model.n_features}
#define {big}_OUTPUTS {model.n_outputs}
#define {big}_PREDICTIONS {width}

/* One row. A missing number is NAN, a missing text NULL; texts are UTF-8. */
typedef struct {{
    {row}
}} {name}_row;

typedef struct {{
    double score[{big}_OUTPUTS]; /* intercept plus the sum of the contributions */
    double prediction[{big}_PREDICTIONS]; /* {meaning} */
    double contribution[{big}_FEATURES][{big}_OUTPUTS];
    double lower[{big}_FEATURES][{big}_OUTPUTS]; /* the least this value can contribute in any context */
    double upper[{big}_FEATURES][{big}_OUTPUTS]; /* and the most */
}} {name}_result;

void {name}_predict(const {name}_row *row, {name}_result *result);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _source(model: TableModel, name: str, fields: tuple[str, ...]) -> str:
    gate = model.gate
    terms, bias = gate.terms.transpose(0, 2, 1), gate.bias.T  # (T, M, W), (M, W)
    width, logits = gate.terms.shape[1], model.n_experts * model.n_features
    sizes = {"F": model.n_features, "K": model.n_experts, "O": model.n_outputs, "M": model.n_members}
    sizes |= {"W": width, "L": logits, "C": model.routing.n_active}
    parts = [f'#include "{name}.h"', "#include <math.h>", "#include <string.h>", ""]
    parts += [f"enum {{ {', '.join(f'{key} = {value}' for key, value in sizes.items())} }};", ""]
    parts.append(_array("experts", model.experts.transpose(0, 3, 1, 2), "[M * K * O]"))
    if model.n_experts > 1:
        parts += [_array("terms", terms, "[M * W]"), _array("bias", bias, "[L]" if gate.kind == "diagonal" else "[W]")]
    if gate.mix is not None and gate.mix_bias is not None and model.n_experts > 1:
        parts.append(_array("mix", gate.mix.reshape(-1, logits), "[L]"))
        parts.append(_array("mix_bias", gate.mix_bias.T, "[L]"))
    parts.append(_array("intercept", model.intercept[None].astype(np.float64), "[O]"))
    parts += [_lookups(model, fields, name), _WEIGHTS if model.n_experts > 1 else "", _bounds(model)]
    parts.append(_predict(model, name))
    return "\n".join(parts)


def _array(name: str, values: AnyArray, tail: str) -> str:
    rows = values.reshape(len(values), -1)
    is_single = values.dtype == np.float32
    kind, digits, suffix = ("float", 9, "f") if is_single else ("double", 17, "")
    lines = ["{" + ",".join(_literal(value, digits) + suffix for value in row.tolist()) + "}" for row in rows]
    return f"static const {kind} {name}[{len(rows)}]{tail} = {{\n" + ",\n".join(lines) + "\n};\n"


def _literal(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    return text if "." in text or "e" in text else f"{text}.0"


def _text(value: str) -> str:
    """Return a C string literal of ASCII characters alone."""
    content = value.encode("utf-8", "surrogatepass")
    if b"\0" in content:
        raise UserError(f"A level that holds a null character cannot be written in C; {value!r} does.")
    plain = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+.,:;()[]<>=!&/*%#@")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in content) + '"'


def _comment(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9 _.,:;()-]", "?", value)[:80]


def _lookups(model: TableModel, fields: tuple[str, ...], name: str) -> str:
    out, calls = [], []
    numbers = [feature for feature in model.schema.features if isinstance(feature, Number)]
    if numbers:
        out.append(_LOCATE_NUMBER)
    if len(numbers) < model.n_features:
        out.append(_LOCATE_TEXT)
    for i, (feature, field) in enumerate(zip(model.schema.features, fields, strict=True)):
        first = int(model.schema.offsets[i])
        if isinstance(feature, Number):
            knots = ",".join(_literal(knot, 17) for knot in feature.knots.tolist())
            out.append(f"static const double knots_{i}[] = {{{knots}}};")
            calls.append(
                f"slot[{i}] = {first} + locate_number(row->{field}, knots_{i}, {feature.n_values}, &part[{i}]);"
            )
        else:
            calls.append(_category(feature, i, field, first, out))
    body = "\n    ".join(calls)
    out.append(f"\nstatic void locate(const {name}_row *row, int *slot, double *part)\n{{\n    {body}\n}}\n")
    return "\n".join(out)


def _category(feature: Category, i: int, field: str, first: int, out: list[str]) -> str:
    names = [*feature.levels, *feature.rare]
    slots = [*range(len(feature.levels)), *([len(feature.levels)] * len(feature.rare))]
    texts = ",".join(_text(level) for level in names) or '""'  # no level at all: C has no empty arrays
    out.append(f"static const char *const levels_{i}[] = {{{texts}}};")
    out.append(f"static const int slots_{i}[] = {{{','.join(map(str, slots)) or '0'}}};")
    call = f"locate_text(row->{field}, levels_{i}, slots_{i}, {len(names)}, {feature.n_values})"
    return f"slot[{i}] = {first} + {call};\n    part[{i}] = 0;"


_LOCATE_NUMBER = """
static int locate_number(double value, const double *knots, int n, double *part)
{
    int low = 0, high = n - 1;
    double span;
    *part = 0;
    if (isnan(value)) return n;
    if (value <= knots[0]) return 0;
    if (value >= knots[n - 1]) return n - 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (knots[middle] <= value) low = middle; else high = middle;
    }
    span = knots[high] - knots[low];
    *part = (value - knots[low]) / span;
    if (isinf(span)) *part = (value / 2 - knots[low] / 2) / (knots[high] / 2 - knots[low] / 2);
    return low;
}
"""
_LOCATE_TEXT = """
static int locate_text(const char *text, const char *const *levels, const int *slots, int n, int n_values)
{
    int i;
    if (text == NULL) return n_values;
    for (i = 0; i < n; i++)
        if (strcmp(text, levels[i]) == 0) return slots[i];
    return n_values + 1;
}
"""
# Of equal logits the first wins, so an expert is active if fewer than C others stand before it.
_WEIGHTS = """
static void weigh(const double *logits, int is_equal, double *weights)
{
    double most = logits[0], total = 0;
    int k, j;
    for (k = 1; k < K; k++)
        if (logits[k * F] > most) most = logits[k * F];
    for (k = 0; k < K; k++) {
        int before = 0;
        for (j = 0; j < K; j++)
            before += logits[j * F] > logits[k * F] || (logits[j * F] == logits[k * F] && j < k);
        weights[k] = before >= C ? 0 : is_equal ? 1 : exp(logits[k * F] - most);
        total += weights[k];
    }
    for (k = 0; k < K; k++) weights[k] /= total;
}
"""


def _bounds(model: TableModel) -> str:
    if model.routing.name == "softmax":
        return """
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
    return """
static void bound(const double *values, double *lower, double *upper)
{
    int k, j;
    *lower = *upper = 0;
    for (k = 0; k < K; k++) {
        int rank = 0;
        for (j = 0; j < K; j++) rank += values[j] < values[k] || (values[j] == values[k] && j < k);
        if (rank < C) *lower += values[k] / C;
        if (rank >= K - C) *upper += values[k] / C;
    }
}
"""


def _predict(model: TableModel, name: str) -> str:
    is_equal = int(model.routing.name == "equal")
    weigh = f"weigh(logits + i, {is_equal}, weights);" if model.n_experts > 1 else "weights[0] = 1;"
    needs = "    double logits[L];\n" if model.n_experts > 1 else ""
    return f"""
void {name}_predict(const {name}_row *row, {name}_result *result)
{{
    int slot[F], up[F], i, k, m, o;
    double part[F];
    locate(row, slot, part);
    for (o = 0; o < O; o++) result->score[o] = intercept[0][o];
    for (i = 0; i < F; i++) {{
        up[i] = slot[i] + (part[i] > 0);
        for (o = 0; o < O; o++)
            result->contribution[i][o] = result->lower[i][o] = result->upper[i][o] = 0;
    }}
    for (m = 0; m < M; m++) {{
    {needs}{_gate(model)}
        for (i = 0; i < F; i++) {{
            double weights[K], values[K], lower, upper;
            {weigh}
            for (o = 0; o < O; o++) {{
                double total = 0;
                for (k = 0; k < K; k++) {{
                    double low = experts[slot[i]][(m * K + k) * O + o], high = experts[up[i]][(m * K + k) * O + o];
                    values[k] = low + part[i] * (high - low);
                    total += weights[k] * values[k];
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
            result->score[o] += value;
            if (result->lower[i][o] > value) result->lower[i][o] = value;
            if (result->upper[i][o] < value) result->upper[i][o] = value;
        }}
    {_link(model)}
}}
"""


def _gate(model: TableModel) -> str:
    kind = model.gate.kind
    if model.n_experts == 1:
        return ""
    blend = "(1 - part[i]) * terms[slot[i]][m * W + {0}] + part[i] * terms[up[i]][m * W + {0}]"
    if kind == "diagonal":
        own = blend.format("k")
        return f"""
        for (k = 0; k < K; k++)
            for (i = 0; i < F; i++) logits[k * F + i] = bias[m][k * F + i] + {own};"""
    target = "logits" if kind == "additive" else "hidden"
    total = f"""
        for (k = 0; k < W; k++) {target}[k] = bias[m][k];
        for (i = 0; i < F; i++)
            for (k = 0; k < W; k++) {target}[k] += {blend.format("k")};"""
    if kind == "additive":
        return total
    relu = "if (hidden[k] < 0) hidden[k] = 0;\n            " if kind == "deep" else ""
    return f"""    double hidden[W];{total}
        for (o = 0; o < L; o++) logits[o] = mix_bias[m][o];
        for (k = 0; k < W; k++) {{
            {relu}for (o = 0; o < L; o++) logits[o] += hidden[k] * mix[m * W + k][o];
        }}"""


def _prediction_width(model: TableModel) -> int:
    return len(model.classes) or model.n_outputs


def _link(model: TableModel) -> str:
    if model.link.name == "logit":
        return """{
        double small = exp(-fabs(result->score[0])), p = 1 / (1 + small);
        result->prediction[1] = result->score[0] >= 0 ? p : small * p;
        result->prediction[0] = result->score[0] >= 0 ? small * p : p;
    }"""
    if model.link.name == "softmax":
        return """{
        double most = result->score[0], total = 0;
        for (o = 1; o < O; o++)
            if (result->score[o] > most) most = result->score[o];
        for (o = 0; o < O; o++) total += result->prediction[o] = exp(result->score[o] - most);
        for (o = 0; o < O; o++) result->prediction[o] /= total;
    }"""
    value = "exp(result->score[o])" if model.link.name == "log" else "result->score[o]"
    return f"for (o = 0; o < O; o++) result->prediction[o] = {value};"
