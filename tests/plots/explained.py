"""A small model with everything a picture must cope with, and its explanations."""

from functools import cache

import numpy as np

from nae.encoding import Category, Columns, Number, Schema
from nae.explanation import (
    GlobalExplanation,
    InteractionExplanation,
    InteractionStrength,
    LocalExplanation,
    with_statistics,
)
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel

__all__ = ["NAMES", "explained", "global_of", "interaction_of", "local_of", "model_of", "rows_of", "strength_of"]

# A long number with a tail, few values, a boolean, forty levels, and names that try to break a label.
NAMES = (
    "income",
    "rooms",
    "is $new$ <b>home</b>",
    "שם השדה الاسم",
    "a very long name that " + "goes on and " * 12 + "on",
)
LEVELS = tuple(f"level number {i:02d} of forty" for i in range(40))


@cache
def model_of(n_outputs: int = 1, n_members: int = 2, n_experts: int = 3) -> TableModel:
    """Return a model of five features; of three classes, of two targets, or of one. With one expert it is additive."""
    random = np.random.default_rng(0)
    knots = np.sort(np.concatenate([random.normal(size=60), [-0.0, 500.0]]))
    features = (
        Number(NAMES[0], knots, has_missing=True),
        Number(NAMES[1], np.arange(6.0), integral=True),
        Number(NAMES[2], np.array([0.0, 1.0]), is_boolean=True),
        Category(NAMES[3], LEVELS, has_missing=True),
        Category(NAMES[4], ("<i>yes</i>", "no $x$ no"), rare=("maybe", "perhaps")),
    )
    schema = Schema(features)

    def draw(*shape: int) -> np.ndarray:
        return random.standard_normal(shape)

    width = len(features) * n_experts
    gate = GateTables("additive", draw(schema.n_slots, width, n_members), draw(width, n_members))
    names = tuple(f"class {i}" for i in range(n_outputs)) if n_outputs > 2 else ("up", "down")[:n_outputs]
    model = TableModel(
        schema,
        draw(schema.n_slots, n_experts, n_outputs, n_members),
        gate,
        SoftmaxRouting(n_experts),
        draw(n_outputs),
        LINKS["softmax" if n_outputs > 2 else "identity"],
        outputs=names if n_outputs > 1 else ("score",),
        classes=names if n_outputs > 2 else (),
    )
    return with_statistics(model, rows_of())


@cache
def rows_of(n_rows: int = 400) -> Columns:
    """Return rows with missing, unseen and in-between values."""
    random = np.random.default_rng(1)
    income = np.append(random.normal(size=n_rows - 5), [np.nan] * 4 + [500.0])
    levels = np.array([*LEVELS, None, "never seen"], dtype=object)
    frequency = np.append(1.0 / np.arange(1, 41), [0.1, 0.05])
    return Columns(
        (
            income,
            random.integers(0, 6, n_rows).astype(float),
            random.integers(0, 2, n_rows).astype(bool),
            random.choice(levels, n_rows, p=frequency / frequency.sum()),
            random.choice(np.array(["<i>yes</i>", "no $x$ no", "maybe"], dtype=object), n_rows),
        ),
        NAMES,
    )


def explained(n_outputs: int = 1) -> GlobalExplanation:
    """Return the global explanation without rows."""
    return model_of(n_outputs).explain_global()


def global_of(n_outputs: int = 1) -> GlobalExplanation:
    """Return the global explanation with the contributions of rows."""
    return model_of(n_outputs).explain_global(rows_of())


def local_of(n_outputs: int = 1) -> LocalExplanation:
    """Return the explanation of a few rows."""
    return model_of(n_outputs).explain_local(rows_of().take(np.arange(390, 400)), np.arange(10.0))


def interaction_of(*names: str, n_outputs: int = 1, has_rows: bool = False) -> InteractionExplanation:
    """Return an interaction."""
    return model_of(n_outputs).explain_interaction(*names, X=rows_of() if has_rows else None, resolution=16)


def strength_of(n_outputs: int = 1) -> InteractionStrength:
    """Return who changes whom."""
    return model_of(n_outputs).interaction_strength()
