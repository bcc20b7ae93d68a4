"""Models that are monotone by construction, for every gate, and the same with one violation planted."""

from collections.abc import Callable

import numpy as np

from nae._typing import Array
from nae.encoding import Category, Number
from nae.tables import TableModel
from tests.laws.models import make_model

__all__ = ["FEATURES", "VIOLATIONS", "monotone_model"]

FEATURES = (
    Number("income", np.arange(6.0)),
    Number("age", np.array([0.0, 10.0, 30.0]), has_missing=True),
    Category("town", ("Ulm", "Köln"), ("Aalen", "Bonn")),
)


def monotone_model(
    random: np.random.Generator, *, gate: str, routing: str = "softmax", n_active: int = 3, n_members: int = 2
) -> TableModel:
    """Return a model whose score increases with its first feature, which changes the weights of every feature."""
    model = make_model(
        random, features=FEATURES, n_experts=3, n_active=n_active, n_members=n_members, gate=gate, routing=routing
    )
    n_knots = FEATURES[0].n_values
    model.experts[:n_knots] = np.cumsum(0.02 * random.uniform(size=(n_knots, *model.experts.shape[1:])), axis=0)
    model.experts[:] = np.sort(model.experts, axis=1)
    terms = random.uniform(0.5, 1.0, (n_knots, *model.gate.terms.shape[1:])).cumsum(axis=0)
    if model.gate.mix is not None:  # hidden units grow with the feature, and favour higher experts
        mix = model.gate.mix.reshape(n_members, -1, 3, len(FEATURES))
        mix[:] = np.cumsum(np.abs(mix), axis=2)
    else:
        shape = (n_knots, 3, -1, n_members)
        terms = terms.reshape(shape).cumsum(axis=1).reshape(terms.shape)
    model.gate.terms[:n_knots] = terms
    return model


def _plant_falling_experts(model: TableModel) -> None:
    model.experts[3] -= 1.0


def _plant_disorder(model: TableModel) -> None:
    slot = model.schema.offsets[2]
    model.experts[slot] = 20 * np.sort(model.experts[slot], axis=0)[::-1]


def _plant_falling_logits(model: TableModel) -> None:
    model.gate.terms[3] = -8 * np.abs(model.gate.terms[3])
    model.experts[model.schema.slots(1)] *= 20


VIOLATIONS: dict[str, Callable[[TableModel], None]] = {
    "experts that fall": _plant_falling_experts,
    "experts without an order": _plant_disorder,
    "logits that fall": _plant_falling_logits,
}


def own_terms(model: TableModel, feature: int) -> Array:
    """Return the gate terms of a feature, to be changed in place."""
    return model.gate.terms[model.schema.slots(feature)]
