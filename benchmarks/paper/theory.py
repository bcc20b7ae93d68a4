"""Check the paper's lemmas and theorems numerically, with the routing of the tables."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.claims import Claim, claims_table
from benchmarks.paper.drawing import Curve, draw_curves
from benchmarks.paper.experiment import Experiment, Picture, Results, Section
from benchmarks.paper.housing import LAMBDAS, lambda_run
from benchmarks.paper.runs import DEFAULT, PAPER, Run
from nae.tables.routing import SoftmaxRouting

__all__ = ["EXPERIMENTS", "approximation_errors", "pair_by_experts", "product_by_experts"]

Array = NDArray[np.float64]
GRID = np.linspace(-1.0, 1.0, 201)
MOST_TERMS = 10
EXACT = 1e-12


def product_by_experts(u: Array, v: Array, *, scale: float) -> Array:
    """Return Lemma 2's output (value of x_i, value of x_j): experts ±C u(x_i), gate ∓arctanh(v(x_j) / C)."""
    experts = np.stack([scale * u, -scale * u])  # (expert, x_i)
    beta = -np.arctanh(v / scale)
    logits = np.stack([-beta, beta], axis=1)[:, :, None, None]  # (x_j, expert, 1, 1)
    weights = SoftmaxRouting(n_active=2).weights(logits)[:, :, 0, 0]
    return np.asarray(experts.T @ weights.T)


def pair_by_experts(values: Array, n_terms: int) -> Array:
    """Return a function of two features, computed by one head with 1 + 2M experts and a single softmax (Theorem 2).

    In the paper, every product has its own softmax. One softmax over all experts works as well: if a product's two
    logits include -log(2 cosh β), the common weight of its two experts is constant, and the experts are scaled up.
    """
    left, size, right = np.linalg.svd(values)
    u, v = left[:, :n_terms] * size[:n_terms], right[:n_terms]
    scale = 1.5 * np.abs(v).max(axis=1)  # the lemma's C, above the largest |v|
    beta = -np.arctanh(v / scale[:, None])  # (term, x_j)
    mass = -np.log(2 * np.cosh(beta))
    # Experts: one with the value 0 (the additive part), and two per product. All 1 + M groups have the same weight.
    experts = np.concatenate([np.zeros((1, len(u))), (scale * u).T, -(scale * u).T]) * (1 + n_terms)
    logits = np.concatenate([np.zeros((1, v.shape[1])), mass - beta, mass + beta]).T[:, :, None, None]
    weights = SoftmaxRouting(n_active=1 + 2 * n_terms).weights(logits)[:, :, 0, 0]
    return np.asarray(experts.T @ weights.T)


def approximation_errors(values: Array) -> list[float]:
    """Return the largest error of the best sum of M products on the grid, for M = 1, 2, … (Lemma 1)."""
    left, size, right = np.linalg.svd(values)
    found = [(left[:, :m] * size[:m]) @ right[:m] for m in range(1, MOST_TERMS + 1)]
    return [float(np.abs(values - each).max()) for each in found]


def _functions() -> dict[str, Array]:
    x, y = np.meshgrid(GRID, GRID, indexing="ij")
    return {
        "2 sin(πx) cos(πy)": np.asarray(2 * np.sin(np.pi * x) * np.cos(np.pi * y)),
        "exp(−2 (x − y)²)": np.asarray(np.exp(-2 * (x - y) ** 2)),
        "|x − y|": np.abs(x - y),
    }


def _show(results: Results) -> Section:
    functions = _functions()
    terms = list(range(1, MOST_TERMS + 1))
    lemma = [Curve(name, terms, _floor(approximation_errors(values))) for name, values in functions.items()]
    built = {
        name: [float(np.abs(values - pair_by_experts(values, m)).max()) for m in terms]
        for name, values in functions.items()
    }
    theorem = [Curve(name, [1 + 2 * m for m in terms], _floor(errors)) for name, errors in built.items()]
    pictures = [
        Picture(
            "theory-approximation",
            "Lemma 1: the best sum of M products. Theorem 2: one head with 1 + 2M experts",
            draw_curves(
                [("Lemma 1", lemma), ("Theorem 2", theorem)],
                x_label=("products M", "experts 1 + 2M"),
                y_label="largest error",
                is_log=True,
            ),
        )
    ]
    pictures += _limit(results)
    u, v = np.sin(np.pi * GRID), np.cos(np.pi * GRID)
    product = float(np.abs(product_by_experts(u, v, scale=1.5) - np.outer(u, v)).max())
    additive = np.sin(np.pi * GRID)[:, None] + GRID[None, :] ** 2
    gam = float(np.abs(_gam_by_experts() - additive).max())
    gap = max(
        abs(error - best)
        for name, values in functions.items()
        for error, best in zip(built[name], approximation_errors(values), strict=True)
    )
    first, last = (max(approximation_errors(values)[at] for values in functions.values()) for at in (0, -1))
    claims = [
        Claim(
            f"Lemma 1: {MOST_TERMS} products come nearer than one: their largest errors, ratio", last / first, most=0.5
        ),
        Claim("Lemma 2: two experts make u(x) v(y): largest error", product, most=EXACT),
        Claim("Theorem 1: one expert per feature is a GAM: largest error", gam, most=EXACT),
        Claim("Theorem 2: 1 + 2M experts and one softmax are as good as M products: error", gap, most=1e-9),
        *_limit_claims(results),
    ]
    remarks = (
        "Theorem 2: the paper's sketch gives every product a softmax of its own, while a head has one for all its "
        "experts. It holds all the same: with −log(2 cosh β) added to a product's two logits, their common weight "
        "stays constant. Theorem 3: the appendix proves that the *spread of the experts* does not grow with λ; that "
        "additivity grows with it step by step is not proved there, and need not hold for trained networks. In step "
        "(3) of its proof the weights sum to 1, so the limit is q, not Kq."
    )
    texts = [
        "Built by hand from experts, logits and the softmax of our tables; nothing is trained but for Theorem 3.",
        claims_table(claims, mode="found, or paper mode"),
        remarks,
    ]
    return Section(texts, (), pictures, claims)


def _floor(errors: list[float]) -> list[float]:
    return [max(error, 1e-16) for error in errors]


def _gam_by_experts() -> Array:
    """Return a GAM of two features, computed by heads of one expert each with arbitrary logits."""
    logits = np.random.default_rng(0).normal(size=(len(GRID), 1, 1, 1))
    weights = SoftmaxRouting(n_active=1).weights(logits)[:, 0, 0, 0]
    return np.asarray(weights[:, None] * np.sin(np.pi * GRID)[:, None] + weights[None, :] * GRID[None, :] ** 2)


def _additivities(results: Results, model: str) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for strength in LAMBDAS:
        report = results.report(lambda_run(model, strength))
        if report is not None and report.additivity is not None:
            found.append((strength, report.additivity))
    return found


def _limit_claims(results: Results) -> list[Claim]:
    """Return the claims of Theorem 3 about the additivity of models with an increasing penalty."""
    curves = [[value for _, value in _additivities(results, model)] for model in (PAPER, DEFAULT)]
    falls = [max(0.0, *(a - b for a, b in pairwise(each))) if len(each) > 1 else None for each in curves]
    ends = [each[-1] if len(each) == len(LAMBDAS) else None for each in curves]
    return [
        Claim("Theorem 3: additivity does not fall with λ: largest fall on Housing", falls[0], falls[1], most=0.01),
        Claim(f"Theorem 3: and ends at 1: additivity at λ = {LAMBDAS[-1]:g}", ends[0], ends[1], least=0.95),
    ]


def _limit(results: Results) -> list[Picture]:
    curves = []
    for model, label in ((PAPER, "paper mode"), (DEFAULT, "default")):
        points = _additivities(results, model)
        if points:
            # Zero has no place on a logarithmic axis, so it is drawn one step before the first value.
            curves.append(Curve(label, [np.log10(max(x, 1e-3)) for x, _ in points], [y for _, y in points]))
    if not curves:
        return []
    figure = draw_curves([("Theorem 3 on Housing", curves)], x_label="log₁₀ λ (−3 stands for 0)", y_label="additivity")
    return [Picture("theory-limit", "Additivity against λ", figure)]


def _runs() -> list[Run]:
    return [lambda_run(model, strength) for model in (PAPER, DEFAULT) for strength in LAMBDAS]


EXPERIMENTS = (Experiment("theory", "Lemmas and theorems", "Section 3", _runs, _show),)
