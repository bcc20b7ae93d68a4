"""Lemma 1: a function of two features is a sum of products up to any error; with Theorem 2, so is the model."""

from itertools import pairwise

import numpy as np
import pytest

from nae.tables import TableModel
from tests.theory.construction import Term, pairwise_model

X = np.linspace(-1, 1, 15)
Y = np.linspace(-2, 2, 13)
SURFACES = {
    "a ridge": np.exp(-3 * (X[:, None] - 0.5 * Y[None, :]) ** 2),
    "a kink": np.maximum(X[:, None], 0.5 * Y[None, :]),
    "a twist": np.sin(2 * (X[:, None] + 0.3) * Y[None, :] + X[:, None]),
}
GRID = np.stack([np.repeat(X, len(Y)), np.tile(Y, len(X))], axis=1)


def truncated(surface: np.ndarray, n_terms: int) -> list[Term]:
    """Return the first products of the singular value decomposition, u_m(x) v_m(y), as functions of the grid."""
    left, size, right = np.linalg.svd(surface, full_matrices=False)
    return [
        Term(
            0,
            1,
            lambda x, m=m: np.interp(x, X, left[:, m] * size[m]),
            lambda y, m=m: np.interp(y, Y, right[m]),
        )
        for m in range(n_terms)
    ]


def model_of(surface: np.ndarray, n_terms: int) -> TableModel:
    nothing = [lambda x: np.zeros(len(x))] * 2
    return pairwise_model([X, Y], nothing, truncated(surface, n_terms), 0.0)


def largest_error(surface: np.ndarray, n_terms: int) -> float:
    terms = truncated(surface, n_terms)
    return float(np.abs(surface - sum(np.outer(term.u(X), term.v(Y)) for term in terms)).max())


@pytest.mark.parametrize("name", SURFACES)
def test_the_error_of_a_sum_of_products_falls_with_their_number(name: str) -> None:
    errors = [largest_error(SURFACES[name], n_terms) for n_terms in (1, 3, 6, 9, len(Y))]
    assert all(later < earlier for earlier, later in pairwise(errors))
    assert errors[0] > 0.05  # no single product will do
    assert errors[-1] < 1e-12


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("n_terms", [1, 3, len(Y)])
def test_a_model_of_so_many_experts_has_exactly_that_error(name: str, n_terms: int) -> None:
    surface = SURFACES[name]
    model = model_of(surface, n_terms)
    assert model.n_experts == 1 + 2 * n_terms
    terms = truncated(surface, n_terms)
    expected = sum(np.outer(term.u(X), term.v(Y)) for term in terms)
    np.testing.assert_allclose(model.predict(GRID), expected.ravel(), atol=1e-10)
    error = np.abs(model.predict(GRID) - surface.ravel()).max()
    assert error == pytest.approx(largest_error(surface, n_terms), abs=1e-10)


def test_enough_experts_reach_any_surface_on_the_grid() -> None:
    surface = np.random.default_rng(3).normal(size=(len(X), len(Y)))  # nothing to exploit
    np.testing.assert_allclose(model_of(surface, len(Y)).predict(GRID), surface.ravel(), atol=1e-6)
