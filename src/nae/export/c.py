"""A model as C: one header and one source file. They are C99, allocate no memory and need only the maths library."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nae._files import write_whole
from nae.encoding.schema import Category, Number
from nae.errors import UserError
from nae.export.c_steps import EMITTERS, START, array, literal
from nae.export.source import lowered
from nae.tables.lowered import Lowered

__all__ = ["CSource", "to_c", "write_c"]

_KEYWORDS = frozenset(
    {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
        "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
        "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while",
    }
)  # fmt: skip
# Names that a field cannot have: keywords of later C and of C++, and macros of the headers in use.
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
    """The two files of a model, and the C name of the field of each feature."""

    header: str
    source: str
    fields: tuple[str, ...]


def to_c(model: Any, name: str = "model") -> CSource:
    """Return a model, or the model of a fitted estimator, as C.

    Parameters
    ----------
    model
        A TableModel or a fitted estimator.
    name
        A C identifier that begins all names: ``<name>_row``, ``<name>_result``, ``<name>_predict``.
    """
    found = lowered(model)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in _KEYWORDS:
        raise UserError(f"name must be a C identifier; got {name!r}.")
    fields = _field_names(found.schema.names, name.upper())
    return CSource(_header(found, name, fields), _source(found, name, fields), fields)


def write_c(model: Any, folder: str | os.PathLike[str], *, name: str = "model") -> tuple[Path, Path]:
    """Write ``<name>.h`` and ``<name>.c`` into a folder and return their paths."""
    found = to_c(model, name)
    header, source = Path(folder) / f"{name}.h", Path(folder) / f"{name}.c"
    write_whole(header, found.header)
    write_whole(source, found.source)
    return header, source


def _field_names(names: tuple[str, ...], big: str) -> tuple[str, ...]:
    """Return a C identifier for each feature, similar to its name. ``big`` is how the macros of the header begin."""
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


def _header(model: Lowered, name: str, fields: tuple[str, ...]) -> str:
    big, width = name.upper(), len(model.classes) or model.n_outputs
    lines = [
        f"{'double ' if isinstance(feature, Number) else 'const char *'}{field}; /* {_comment(feature.name)} */"
        for feature, field in zip(model.schema.features, fields, strict=True)
    ]
    row = "\n    ".join(lines)
    names = ", ".join(map(_comment, model.outputs))
    meaning = "probability of every class" if model.classes else "predicted target"
    meaning = f"predictions of {names}, in this order" if model.n_outputs > 1 and not model.classes else meaning
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
    double lower[{big}_FEATURES][{big}_OUTPUTS]; /* the smallest contribution of this value in any context */
    double upper[{big}_FEATURES][{big}_OUTPUTS]; /* the largest contribution of this value in any context */
}} {name}_result;

void {name}_predict(const {name}_row *row, {name}_result *result);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _source(model: Lowered, name: str, fields: tuple[str, ...]) -> str:
    """Return the source file: constants, tables and functions of every step, then the function that calls them."""
    steps = [START]
    for at, step in enumerate(model.steps):
        steps.append(EMITTERS[type(step)](step, steps[-1], f"step{at}"))
    sizes = {"F": model.n_features, "K": model.n_experts, "O": model.n_outputs, "M": model.n_members, "L": "K * F"}
    parts = [f'#include "{name}.h"', "#include <math.h>", "#include <string.h>", ""]
    parts += [f"enum {{ {', '.join(f'{key} = {value}' for key, value in sizes.items())} }};", ""]
    parts += [part for step in steps for part in step.parts]
    parts.append(array("intercept", model.intercept[None].astype(np.float64), "[O]"))
    parts += [_lookups(model, fields, name), _predict(model, name, "".join(step.code for step in steps))]
    return "\n".join(parts)


def _text(value: str) -> str:
    """Return a C string literal that consists of ASCII characters."""
    content = value.encode("utf-8", "surrogatepass")
    if b"\0" in content:
        raise UserError(f"C cannot hold a level with a null character; got {value!r}.")
    plain = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+.,:;()[]<>=!&/*%#@")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in content) + '"'


def _comment(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9 _.,:;()-]", "?", value)[:80]


def _lookups(model: Lowered, fields: tuple[str, ...], name: str) -> str:
    out, calls = [], []
    numbers = [feature for feature in model.schema.features if isinstance(feature, Number)]
    if numbers:
        out.append(_LOCATE_NUMBER)
    if len(numbers) < model.n_features:
        out.append(_LOCATE_TEXT)
    for i, (feature, field) in enumerate(zip(model.schema.features, fields, strict=True)):
        first = int(model.schema.offsets[i])
        if isinstance(feature, Number):
            knots = ",".join(literal(knot, 17) for knot in feature.knots.tolist())
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
    texts = (
        ",".join(_text(level) for level in names) or '""'
    )  # C has no empty arrays, so a category without levels gets one text
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


def _predict(model: Lowered, name: str, steps: str) -> str:
    return f"""
void {name}_predict(const {name}_row *row, {name}_result *result)
{{
    int slot[F], up[F], i, k, m, o;
    double part[F];
    locate(row, slot, part);
    for (i = 0; i < F; i++) {{
        up[i] = slot[i] + (part[i] > 0);
        for (o = 0; o < O; o++)
            result->contribution[i][o] = result->lower[i][o] = result->upper[i][o] = 0;
    }}
    for (m = 0; m < M; m++) {{{steps}
    for (o = 0; o < O; o++) {{
        result->score[o] = intercept[0][o];
        for (i = 0; i < F; i++) result->score[o] += result->contribution[i][o];
    }}
    {_LINKS[model.link.name]}
}}
"""


_LINKS = {
    "identity": "for (o = 0; o < O; o++) result->prediction[o] = result->score[o];",
    "log": "for (o = 0; o < O; o++) result->prediction[o] = exp(result->score[o]);",
    "logit": """{
        double small = exp(-fabs(result->score[0])), p = 1 / (1 + small);
        result->prediction[1] = result->score[0] >= 0 ? p : small * p;
        result->prediction[0] = result->score[0] >= 0 ? small * p : p;
    }""",
    "softmax": """{
        double most = result->score[0], total = 0;
        for (o = 1; o < O; o++)
            if (result->score[o] > most) most = result->score[o];
        for (o = 0; o < O; o++) total += result->prediction[o] = exp(result->score[o] - most);
        for (o = 0; o < O; o++) result->prediction[o] /= total;
    }""",
}
