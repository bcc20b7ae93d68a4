"""The cases that every evaluator of a model must agree on with numpy: small random models, and rows for them.

A new case is a line in ``SPECIAL`` (or in ``REFUSED``, where some evaluator cannot have it); ``CASES`` holds all of
them. Nothing is trained, and the same numbers come every time.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array
from nae.encoding import Category, Feature, Number
from nae.export import MISSING_TOKEN
from nae.links import LINKS
from nae.network.network import ROUTINGS
from nae.tables import Clamps, TableModel
from nae.tables.gates import GATES
from tests.laws.models import UNKNOWN, make_model

__all__ = ["CASES", "REFUSED", "ROUTES", "SPECIAL", "TYPES", "Case", "find"]

TYPES = {"float64": np.float64, "float32": np.float32}
# Routing and number of active experts of four, by name; the random one is what is left of it after training.
ROUTES: dict[str, dict[str, Any]] = {
    "softmax": {"routing": "softmax", "n_active": 4},
    "softmax of two": {"routing": "softmax", "n_active": 2},
    "softmax of one": {"routing": "softmax", "n_active": 1},
    "equal": {"routing": "equal", "n_active": 4},
    "equal of two": {"routing": "equal", "n_active": 2},
    "gumbel of three": {"routing": ROUTINGS["gumbel"].name, "n_active": 3},
    "one expert": {"n_experts": 1},
}
OUTPUTS = {"identity": 1, "log": 2, "logit": 1, "softmax": 3}  # of a link, where a case does not say
N_ROWS = 72  # at least: more than the 64 from which DuckDB joins in another way


@dataclass(frozen=True, eq=False)
class Case:
    """A model, rows, and what is asked about them.

    ``refused`` says which evaluators cannot have the model, each with what its error must say.
    """

    name: str
    model: TableModel
    table: Mapping[str, AnyArray]
    offset: Array | None = None
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.table.values())))


KINDS = (
    Number("size", np.array([-2.5, -1.0, 0.0, 0.1, 3.0e3]), has_missing=True),
    Number("rooms", np.array([1.0, 2.0, 3.0, 8.0]), integral=True),
    Number("is new", np.array([0.0, 1.0]), is_boolean=True),
    Category("kind", ("oak", "pine"), ("elm", "yew"), has_missing=True),
    Category("colour", ("red", "green", "blue")),
    Number("always seven", np.array([7.0])),
    Category("always one", ("one",)),
)
LEVELS = (
    *("", " ", "a", "A", "a ", " a", "1", "1.0", "01", "1e3", "nan", "NaN", "None", "null", "NULL", "True", "true"),
    *("missing", "unseen", "other", 'say "hi"\\', "it's", "'); DROP TABLE nae_experts; --", "müde??/", "*/ #define"),
    *("\n", "\r\n", "\t", "%d", "{0}", "${x}", "🌳", "é", "e\u0301", "__proto__", "constructor", "</script>", "<!--"),
    *("\x1f", "\x7f", "\u2028", "\ufeff", "x" * 1000),
)
NAMES = ("int", "9 lives", "int ", 'say "hi"', "it's", "select", "NULL", "__proto__", "ä🌳", "\n", "%s", "</script>")
TINY, HUGE = 5e-324, float(np.finfo(np.float64).max)


def numbers(*names: str) -> tuple[Feature, ...]:
    """Return numbers of three knots."""
    return tuple(Number(name, np.array([-1.0, 0.5, 1.0])) for name in names)


def knotted(*knots: float) -> tuple[Feature, ...]:
    """Return a number of these knots beside two plain features."""
    return (Number("odd", np.array(knots)), Number("plain", np.array([-1.0, 0.0, 1.0])), KINDS[3])


def leveled(*levels: str, column: AnyArray | None = None) -> dict[str, Any]:
    """Return a category of these levels, beside a number; ``column`` holds other values than text."""
    typed = {} if column is None else {"odd": column}
    return {"features": (Category("odd", levels), *knotted(0.0, 1.0)[1:]), "typed": typed}


def typed_number(column: AnyArray, **more: Any) -> dict[str, Any]:
    """Return a number whose values come in an array of another type."""
    return {"features": (Number("odd", np.array([0.0, 0.1, 1.0]), **more), *KINDS[1:4]), "typed": {"odd": column}}


# Shapes of `case_of` by name: everything that gates, routings and types do not combine to.
SPECIAL: dict[str, dict[str, Any]] = {
    "one number": {"features": KINDS[:1]},
    "one category": {"features": KINDS[3:4]},
    "one constant": {"features": KINDS[5:6]},
    "one member and one expert of one feature": {"features": KINDS[:1], "n_experts": 1, "n_members": 1},
    "constants alone": {"features": KINDS[5:]},
    "a category of no levels": leveled(),
    "rare levels alone": {"features": (Category("rare", (), ("elm", "yew")), *KINDS[:1])},
    "clamps that leave nothing": {"clamps": (0.4, 0.4)},
    "clamps beyond the bounds": {"clamps": (-1.0, 2.0)},
    "clamps of one expert": {"n_experts": 1, "is_clamped": True, "n_outputs": 2},
    "clamps beside the bounds": {"clamps": (1.5, 2.5), "gate": "low-rank", "n_members": 3},
    "many features": {"features": tuple(replace(one, name=f"{one.name} {i}") for i in range(4) for one in KINDS)},
    "many knots": {"features": knotted(*np.linspace(-3.0, 3.0, 200))},
    "five members": {"n_members": 5, "gate": "low-rank"},
    "four outputs": {"n_outputs": 4},
    "four logarithmic outputs": {"link": "log", "n_outputs": 4},
    "six classes": {"link": "softmax", "n_outputs": 6, "gate": "deep"},
    "equal logits": {"scale": 0.0, "n_active": 2},
    "equal logits of a deep gate": {"scale": 0.0, "n_active": 3, "gate": "deep", "routing": "equal"},
    "logits far apart": {"scale": 1e4},
    "logits far apart after a mix": {"scale": 1e4, "gate": "low-rank"},
    "large experts": {"size": 1e30},
    "small experts": {"size": 1e-30},
    "scores beyond the exponential": {"link": "log", "intercept": [800.0, -800.0]},
    "certainly yes": {"link": "logit", "intercept": [800.0]},
    "certainly no": {"link": "logit", "intercept": [-800.0]},
    "certainly the second class": {"link": "softmax", "intercept": [-800.0, 800.0, 0.0]},
    "knots as near as floats are": {"features": knotted(1.0, float(np.nextafter(1.0, 2.0)), 2.0)},
    "knots beside zero": {"features": knotted(0.0, TINY, 1.0)},
    "knots on both sides of zero": {"features": knotted(-2 * TINY, 2 * TINY)},
    "knots of the least numbers": {"features": knotted(*(i * TINY for i in range(-3, 4)))},
    "a knot at minus zero": {"features": knotted(-1.0, -0.0, 1.0)},
    "knots of the largest numbers of a file": {"features": knotted(-HUGE / 4, 0.0, HUGE / 4)},
    "knots that are no single-precision numbers": {"features": knotted(2.0**53, 2.0**53 + 2, 1e300)},
    "booleans": {"features": (KINDS[2], Number("only true", np.array([1.0]), is_boolean=True), *KINDS[3:4])},
    "odd names of features": {"features": (*numbers(*NAMES), *KINDS[3:4])},
    "odd names of levels": leveled(*LEVELS),
    "odd names of rare levels": {"features": (Category("odd", ("a",), LEVELS[3:]), *KINDS[:1])},
    "integers": typed_number(np.array([0, 1, 2, -1, 2**53 + 1, -(2**62)])),
    "single-precision numbers": typed_number(np.array([0.1, 0.5, np.nan, np.inf], np.float32)),
    "booleans for a boolean": typed_number(np.array([True, False])),
    "numbers and none": typed_number(np.array([1, 0.1, None, -0.0, np.inf], object)),
    "booleans and none": typed_number(np.array([True, False, None], object)),
    "whole numbers as levels": leveled("1", "2", "-3", str(2**40), column=np.array([1, 2, -3, 2**40, 4])),
    "floats as levels": leveled(
        *("1", "2.5", "0.1", "0", "-0.25", "1e-07", "inf", "-inf", "-10000000000000000", str(int(1e30))),
        column=np.array([1.0, 2.5, 0.1, 0.0, -0.0, -0.25, 1e-7, np.inf, -np.inf, -1e16, 1e30, 4.0, np.nan]),
    ),
    "single-precision floats as levels": leveled(
        *("1", "0.1", "-2.7", "1e-07", "123456792", "0"),
        column=np.array([1.0, 0.1, -2.7, 1e-7, 123456789.0, -0.0, 0.3, np.nan], np.float32),
    ),
    "booleans as levels": leveled("True", "False", column=np.array([True, False])),
    "booleans and none as levels": leveled("True", "False", column=np.array([True, False, None], object)),
}
HALF = {"onnx": "ONNX holds valid Unicode only", "sql": "SQL holds valid Unicode only"}
# Models that some evaluator cannot have: the shape, and what the error of each such evaluator must say.
REFUSED: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "knots farther apart than the largest number": ({"features": knotted(-HUGE, HUGE)}, {"archive": "numbers up to"}),
    "a level with a null character": (leveled("a\0b", "a"), {"c": "C cannot hold a level with a null character"}),
    "a level called as missing in ONNX": (leveled(MISSING_TOKEN, "a"), {"onnx": "pass another text as missing="}),
    "half a character in a level": (leveled("\ud800", "a"), HALF),
    "half a character in a name": ({"features": numbers("\ud800")}, HALF),
    "a feature called as an output in ONNX": ({"features": numbers("scores")}, {"onnx": "cannot be called 'scores'"}),
    "a feature without a name": ({"features": numbers("")}, {"onnx": "cannot be called ''", "sql": "rename ''"}),
    "names that differ by case": (
        {"features": numbers("Age", "age")},
        {"sql": "must differ in more than case"},
    ),
}


def case_of(
    name: str,
    dtype: str,
    *,
    features: tuple[Feature, ...] = KINDS,
    typed: Mapping[str, AnyArray] | None = None,
    intercept: list[float] | None = None,
    offset: int = 0,
    size: float = 1.0,
    clamps: tuple[float, float] | None = None,
    refused: Mapping[str, str] | None = None,
    **shape: Any,
) -> Case:
    """Return a case.

    Parameters
    ----------
    features
        Of the schema.
    typed
        Columns, by name, whose values are repeated as they are, instead of visiting every kind of cell.
    intercept
        In place of a random one.
    offset
        Numbers per row that are added to the score; 0 for no offset.
    size
        What the experts are multiplied by.
    clamps
        Where both ends of the clamps lie between the bounds at every slot: 0 is the lower bound, 1 the upper one.
    refused
        See :class:`Case`.
    shape
        For :func:`make_model`.
    """
    random = np.random.default_rng(zlib.crc32(name.encode()))
    shape = {"n_experts": 4, "n_members": 2, "link": "identity"} | shape
    shape = {"n_outputs": OUTPUTS[shape["link"]]} | shape
    model = make_model(random, features=features, dtype=TYPES[dtype], **shape)
    model = replace(model, experts=(model.experts * size).astype(TYPES[dtype]))
    if clamps is not None:
        least, most = model.slot_bounds
        ends = (least + part * (most - least) for part in clamps)
        model = replace(model, clamps=Clamps(*ends).astype(TYPES[dtype]))
    if intercept is not None:
        model = replace(model, intercept=np.array(intercept))
    table = {one.name: _visited(one) for one in features} | dict(typed or {})
    n_rows = max(N_ROWS, *(len(values) for values in table.values()))
    rows = {name: _shuffled(random, values, n_rows) for name, values in table.items()}
    given = random.standard_normal((n_rows, offset)) if offset else None
    return Case(f"{name}, {dtype}", model, rows, given, refused or {})


def _visited(feature: Feature) -> AnyArray:
    """Return values that lie in every kind of cell a feature has."""
    if isinstance(feature, Category):
        return np.array([*feature.levels, *feature.rare, UNKNOWN, None], dtype=object)
    knots = feature.knots
    with np.errstate(over="ignore"):
        beside = [np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf), 2 * knots]
    parts = [low * (1 - part) + high * part for low, high in pairwise(knots) for part in (0.3, 0.5)]
    odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, TINY, -TINY, HUGE, -HUGE, 1.0, 2.0]
    return np.concatenate([knots, *beside, parts, odd])


def _shuffled(random: np.random.Generator, values: AnyArray, n_rows: int) -> AnyArray:
    """Return all values at least once, in another order for every column."""
    return values[random.permutation(np.arange(n_rows) % len(values))]


def _combinations() -> Iterator[partial[Case]]:
    """Yield every gate with every routing and type of number; links and members take turns."""
    for (g, gate), (r, route), (d, dtype) in product(*map(enumerate, (GATES, ROUTES, TYPES))):
        link, n_members = list(LINKS)[(g + r + d) % len(LINKS)], (1, 3)[(g + r // 2 + d) % 2]
        name = f"{gate} gate, {route}, {link}"
        yield partial(case_of, name, dtype, gate=gate, link=link, n_members=n_members, **ROUTES[route])


def _clamped() -> Iterator[partial[Case]]:
    """Yield every gate with clamps; routings, types, links and members take turns."""
    for g, gate in enumerate(GATES):
        route, dtype, link = (list(choices)[g % len(choices)] for choices in (ROUTES, TYPES, LINKS))
        name = f"clamped {gate} gate, {route}, {link}"
        yield partial(case_of, name, dtype, gate=gate, link=link, n_members=1 + g % 3, is_clamped=True, **ROUTES[route])


def _offsets() -> Iterator[partial[Case]]:
    """Yield every link with an offset per row, and with one per row and output."""
    for link, dtype in product(LINKS, TYPES):
        for n in {1, OUTPUTS[link]}:
            name = f"{link} with {'an offset' if n == 1 else 'offsets'}"
            yield partial(case_of, name, dtype, link=link, offset=n)


def _all() -> Iterator[Case]:
    for make in (*_combinations(), *_clamped(), *_offsets()):
        yield make()
    for (name, shape), dtype in product(SPECIAL.items(), TYPES):
        yield case_of(name, dtype, **shape)
    for name, (shape, refused) in REFUSED.items():
        yield case_of(name, "float64", refused=refused, **shape)


CASES = tuple(_all())


def find(name: str) -> Case:
    """Return the case of a name."""
    return {case.name: case for case in CASES}[name]
