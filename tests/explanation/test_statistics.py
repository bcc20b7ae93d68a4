"""The mean effect of a number: calm where rows are few, untouched where they are many."""

import numpy as np
import pytest

from nae._typing import Array
from nae.encoding import Columns, Number, Schema
from nae.explanation import with_statistics
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel


def product(n_knots: int) -> TableModel:
    """Return a model in which ``other`` turns the effect of ``value`` over: on average there is no effect."""
    schema = Schema((Number("value", np.linspace(0, 1, n_knots)), Number("other", np.array([-1.0, 1.0]))))
    experts = np.zeros((schema.n_slots, 2, 1, 1))
    experts[:n_knots, 0], experts[:n_knots, 1] = 1.0, -1.0
    terms = np.zeros((schema.n_slots, 4, 1))
    terms[n_knots + 2 : n_knots + 4, 0, 0] = -1.0, 1.0  # the logit of the first expert of ``value``
    gate = GateTables("additive", terms, np.zeros((4, 1)))
    return TableModel(schema, experts, gate, SoftmaxRouting(2), np.zeros(1), LINKS["identity"])


def mean_effect(model: TableModel, value: Array, other: Array, weight: Array | None = None) -> Array:
    table = Columns((value, other), ("value", "other"))
    shape = with_statistics(model, table, sample_weight=weight).explain_global().feature("value")
    return shape.mean[:-2, 0]


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_a_few_rows_a_knot_give_a_calm_line(scale: float) -> None:
    random = np.random.default_rng(0)
    value, other = random.uniform(size=500), random.choice([-1.0, 1.0], size=500)
    found = mean_effect(product(125), value, other, np.full(500, scale))
    alone = np.tanh(0.5) / np.sqrt(4)  # the noise of four rows
    assert 0 < found.std() < alone / 2


def test_a_knot_with_rows_enough_keeps_their_mean() -> None:
    value, other = np.repeat(np.linspace(0, 1, 5), 100), np.tile([1.0, 1.0, 1.0, -1.0], 125)
    other[:100] = 1.0
    expected = [np.tanh(0.5)] + 4 * [np.tanh(0.5) / 2]
    np.testing.assert_allclose(mean_effect(product(5), value, other), expected)


def test_weight_two_is_a_row_twice() -> None:
    random = np.random.default_rng(1)
    value, other = random.uniform(size=60), random.choice([-1.0, 1.0], size=60)
    weight = random.choice([1.0, 2.0], size=60)
    twice = np.repeat(np.arange(60), weight.astype(int))
    found = mean_effect(product(12), value, other, weight)
    np.testing.assert_allclose(found, mean_effect(product(12), value[twice], other[twice]))
