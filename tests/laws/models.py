"""Random models and tables: any gate, routing, number of members and outputs, and any value a cell can meet."""

from dataclasses import replace

import numpy as np

from nae._typing import Array
from nae.encoding import Category, Columns, Feature, Number, Schema
from nae.links import LINKS
from nae.tables import Clamps, GateTables, TableModel
from nae.tables.evidence import Evidence
from nae.tables.residuals import Residuals, Sizes
from nae.tables.routing import ROUTINGS

__all__ = ["UNKNOWN", "clamped", "make_model", "make_schema", "make_table", "permuted", "with_doubts"]

UNKNOWN = "never seen"


def make_schema(random: np.random.Generator, n_features: int) -> Schema:
    """Return numbers, booleans and categories, with and without missing values and rare levels."""
    features: list[Feature] = []
    for i in range(n_features):
        name, has_missing = f"f{i}", bool(random.integers(2))
        kind = random.integers(5)
        if kind == 0:
            levels = tuple(f"level {j}" for j in range(random.integers(1, 5)))
            rare = ("rare 0", "rare 1") if random.integers(2) else ()
            features.append(Category(name, levels, rare, has_missing))
        elif kind == 1:
            features.append(Number(name, np.array([0.0, 1.0]), is_boolean=True, has_missing=has_missing))
        else:
            scale = 10.0 ** random.integers(-3, 4)
            knots = np.unique(random.standard_normal(random.integers(1, 7)) * scale)
            features.append(Number(name, knots, has_missing=has_missing))
    return Schema(tuple(features))


def make_model(
    random: np.random.Generator,
    *,
    n_features: int = 3,
    features: tuple[Feature, ...] = (),
    n_experts: int = 3,
    n_active: int | None = None,
    n_outputs: int = 1,
    n_members: int = 1,
    gate: str = "additive",
    routing: str = "softmax",
    link: str = "",
    scale: float = 1.0,
    dtype: type = np.float64,
    is_clamped: bool = False,
) -> TableModel:
    """Return a model of random tables, of the given or of random features; ``scale`` is that of its logits.

    If ``is_clamped``, clamps leave a random part of the range between the bounds at every slot.
    """
    schema = Schema(features) if features else make_schema(random, n_features)
    n_slots, n_logits = schema.n_slots, n_experts * len(schema)
    width = {"additive": n_logits, "diagonal": n_experts}.get(gate, 4)

    def draw(*shape: int, size: float = 1.0) -> Array:
        return (size * random.standard_normal(shape)).astype(dtype)

    is_mixed = gate in ("low-rank", "deep")
    tables = GateTables(
        kind=gate,
        terms=draw(n_slots, width, n_members, size=scale),
        bias=draw(n_logits if gate == "diagonal" else width, n_members, size=scale),
        mix=draw(n_members, width, n_logits) if is_mixed else None,
        mix_bias=draw(n_logits, n_members) if is_mixed else None,
    )
    names = tuple(f"class {i}" for i in range(n_outputs))
    link = link or ("softmax" if n_outputs > 2 else "identity")
    classes = {"softmax": names, "logit": ("no", "yes")}.get(link, ())
    model = TableModel(
        schema=schema,
        experts=draw(n_slots, n_experts, n_outputs, n_members, size=2.0),
        gate=tables,
        routing=ROUTINGS[routing](n_experts if n_active is None else n_active),
        intercept=draw(n_outputs).astype(np.float64),
        link=LINKS[link],
        outputs=names,
        classes=classes,
    )
    return clamped(model, random) if is_clamped else model


def clamped(model: TableModel, random: np.random.Generator) -> TableModel:
    """Return the model with clamps that leave a random part of the range between its bounds at every slot."""
    least, most = model.slot_bounds
    parts = np.sort(random.uniform(-0.2, 1.2, (2, *least.shape)), axis=0).clip(0.0, 1.0)
    return replace(model, clamps=Clamps(*(least + part * (most - least) for part in parts)).astype(model.experts.dtype))


def with_doubts(model: TableModel, random: np.random.Generator, n_points: int = 99) -> TableModel:
    """Return the model with random residuals and evidence, as though it had been fitted to rows."""
    shape = (n_points, 1 if model.classes else model.n_outputs)
    drawn = random.uniform(size=shape) if model.classes else random.standard_normal(shape)
    entry = {"source": "out-of-fold", "n_rows": 2 * n_points, "coverage": {"0.9": 0.9}}
    sizes = None
    if not model.classes:
        slots = random.standard_normal((model.schema.n_slots, model.n_outputs))
        knots = np.sort(random.standard_normal((4, model.n_outputs)), axis=0)
        sizes = Sizes(slots, knots, random.standard_normal(knots.shape))
    residuals = Residuals(np.sort(drawn, axis=0), sizes)
    centre, error = random.uniform(-1.0, 1.0, (2, model.schema.n_slots, model.n_outputs))
    evidence = Evidence(centre, np.abs(error), random.uniform(size=(model.n_features, model.n_outputs)))
    return replace(model, residuals=residuals, evidence=evidence).with_training(intervals=entry)


def make_table(random: np.random.Generator, schema: Schema, n_rows: int) -> Columns:
    """Return rows with known, in-between, out-of-range, infinite, missing and unseen values."""
    arrays = [
        _category(random, f, n_rows) if isinstance(f, Category) else _number(random, f, n_rows) for f in schema.features
    ]
    return Columns(tuple(arrays), schema.names)


def permuted(model: TableModel, order: list[int]) -> TableModel:
    """Return the same model with its features in another order."""
    slots = np.concatenate([np.arange(model.schema.n_slots)[model.schema.slots(i)] for i in order])
    logits = np.arange(model.n_experts * model.n_features).reshape(model.n_experts, -1)[:, order].ravel()
    gate = model.gate
    is_mixed = gate.mix is not None and gate.mix_bias is not None
    terms = gate.terms[slots]
    return replace(
        model,
        schema=Schema(tuple(model.schema.features[i] for i in order)),
        experts=model.experts[slots],
        clamps=None if model.clamps is None else model.clamps.take(slots),
        gate=GateTables(
            gate.kind,
            terms[:, logits] if gate.kind == "additive" else terms,
            gate.bias if is_mixed else gate.bias[logits],
            gate.mix[:, :, logits] if gate.mix is not None else None,
            gate.mix_bias[logits] if gate.mix_bias is not None else None,
        ),
    )


def _number(random: np.random.Generator, feature: Number, n_rows: int) -> Array:
    knots = feature.knots
    span = max(float(knots[-1] - knots[0]), 1.0)
    inside = random.uniform(knots[0], knots[-1], n_rows)
    outside = random.uniform(knots[0] - span, knots[-1] + span, n_rows)
    odd = random.choice([np.inf, -np.inf, np.nan, -0.0, 1e308, -1e308, 5e-324], n_rows)
    return np.choose(random.integers(4, size=n_rows), [random.choice(knots, n_rows), inside, outside, odd])


def _category(random: np.random.Generator, feature: Category, n_rows: int) -> np.ndarray:
    options = np.array([*feature.levels, *feature.rare, UNKNOWN, None], dtype=object)
    return random.choice(options, n_rows)
