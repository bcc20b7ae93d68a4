"""What the model class contains: additive models exactly, pairwise ones up to the separable part (Section 3)."""

from itertools import product

import numpy as np
import pytest

from nae import metrics
from tests.theory.construction import Term, additive_model, pairwise_model, product_model

KNOTS = [np.linspace(-2, 2, 9), np.linspace(0, 1, 7), np.sort(np.random.default_rng(0).normal(size=8))]
GRID = np.array(list(product(*KNOTS)))
MAINS = [np.sin, lambda x: x**2 - 1, np.exp]
TERMS = [
    Term(0, 1, np.cos, lambda x: 3 * x - 1),
    Term(0, 1, lambda x: x, lambda x: np.sin(5 * x)),
    Term(0, 2, lambda x: x**3, np.tanh),
    Term(1, 2, np.sqrt, lambda x: x**2),
]


def pairwise_truth(rows: np.ndarray, terms: list[Term] = TERMS, intercept: float = 0.7) -> np.ndarray:
    total = np.full(len(rows), intercept)
    for i, main in enumerate(MAINS):
        total += main(rows[:, i])
    for term in terms:
        total += term.u(rows[:, term.head]) * term.v(rows[:, term.partner])
    return total


def test_theorem_1_one_expert_per_feature_is_any_additive_model() -> None:
    model = additive_model(KNOTS, MAINS, 0.7)
    found = model.contributions(GRID)
    assert model.n_experts == 1
    np.testing.assert_allclose(model.predict(GRID), pairwise_truth(GRID, []), atol=1e-12)
    for i, main in enumerate(MAINS):
        np.testing.assert_allclose(found.values[:, i], main(GRID[:, i]), atol=1e-12)
    np.testing.assert_array_equal(found.lower, found.upper)
    assert float(metrics.additivity(model, GRID)) == pytest.approx(1.0, abs=1e-9)


def test_lemma_2_two_experts_give_a_product() -> None:
    u, v = np.cos, lambda x: 3 * np.sin(4 * x) - 1
    model = product_model(KNOTS, Term(0, 1, u, v))
    found = model.contributions(GRID, with_experts=True)
    expected = u(GRID[:, 0]) * v(GRID[:, 1])
    assert model.n_experts == 2
    np.testing.assert_allclose(model.predict(GRID), expected, atol=1e-10)
    np.testing.assert_allclose(found.values[:, 0], expected, atol=1e-10)
    np.testing.assert_array_equal(found.values[:, 1:], 0.0)
    # r+ - r- = v / C: Eq. (12), with C = 1.1 max |v|.
    difference = found.routing[:, 0, 0, 0] - found.routing[:, 0, 0, 1]
    np.testing.assert_allclose(difference, v(GRID[:, 1]) / (1.1 * np.abs(v(KNOTS[1])).max()), atol=1e-12)


def test_lemma_2_keeps_the_product_within_its_bounds() -> None:
    found = product_model(KNOTS, Term(0, 1, np.cos, np.sin)).contributions(GRID)
    assert (found.lower[:, 0] < found.values[:, 0]).all()
    assert (found.values[:, 0] < found.upper[:, 0]).all()


def test_theorem_2_one_softmax_holds_main_effects_and_several_products() -> None:
    model = pairwise_model(KNOTS, MAINS, TERMS, 0.7)
    np.testing.assert_allclose(model.predict(GRID), pairwise_truth(GRID), atol=1e-10)


def test_theorem_2_needs_no_more_experts_than_it_says() -> None:
    of_head = [sum(term.head == i for term in TERMS) for i in range(3)]
    assert pairwise_model(KNOTS, MAINS, TERMS, 0.7).n_experts == 1 + 2 * max(of_head)


def test_theorem_2_gives_every_term_an_equal_share_whatever_the_row() -> None:
    weights = pairwise_model(KNOTS, MAINS, TERMS, 0.7).contributions(GRID, with_experts=True).routing[:, :, 0]
    np.testing.assert_allclose(weights[:, :, 0], 1 / 4, atol=1e-12)  # the main effects
    for m in range(3):
        np.testing.assert_allclose(weights[:, :, 1 + 2 * m] + weights[:, :, 2 + 2 * m], 1 / 4, atol=1e-12)


def test_the_plain_logits_of_lemma_2_do_not_add_up_in_one_softmax() -> None:
    model = pairwise_model(KNOTS, MAINS, TERMS, 0.7, is_balanced=False)
    assert np.abs(model.predict(GRID) - pairwise_truth(GRID)).max() > 0.1


def test_between_the_knots_the_error_falls_with_their_number() -> None:
    rows = np.random.default_rng(1).uniform([-2, 0, -1], [2, 1, 1], size=(500, 3))
    errors = []
    for n_knots in (9, 33, 129):
        knots = [np.linspace(-2, 2, n_knots), np.linspace(0, 1, n_knots), np.linspace(-1, 1, n_knots)]
        model = pairwise_model(knots, MAINS, TERMS, 0.7)
        errors.append(np.abs(model.predict(rows) - pairwise_truth(rows)).max())
    assert errors[1] < errors[0] / 4
    assert errors[2] < errors[1] / 4
