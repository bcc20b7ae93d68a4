"""The paper's equations, one row and one member at a time, in loops: slow, plain, and independent of the library.

Equation numbers are the paper's. Vectors are numpy arrays; what carries an index in the paper is a list here. Only two
things go beyond the paper: the embedding may be interpolated between knots (which is how the library defines it), and
the scores may pass through a low-rank map.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

__all__ = [
    "Block",
    "Model",
    "Outcome",
    "additivity",
    "aggregate",
    "bounds",
    "bounds_over_combinations",
    "embed",
    "equal_relevance",
    "expert_outputs",
    "gumbel_relevance",
    "interpolation",
    "mask",
    "objective",
    "relevance",
    "run",
    "scores",
    "softmax",
    "spread",
    "tightness",
]


@dataclass(frozen=True)
class Block:
    """One layer of an encoder: linear, layer norm (or a fixed one), scale and shift, ReLU."""

    weight: np.ndarray  # (in, out)
    bias: np.ndarray  # (out,)
    scale: np.ndarray  # (out,)
    shift: np.ndarray  # (out,)
    fixed: tuple[np.ndarray, np.ndarray] | None = None  # running mean and variance of a batch norm


def embed(inputs: np.ndarray, blocks: Sequence[Block]) -> np.ndarray:
    """Eq. (1): the latent representation of one feature's value."""
    hidden = inputs
    for block in blocks:
        width = len(block.bias)
        linear = np.zeros(width)
        for out in range(width):
            linear[out] = block.bias[out] + sum(hidden[i] * block.weight[i, out] for i in range(len(hidden)))
        if block.fixed is None:
            mean, variance = np.full(width, linear.mean()), np.full(width, linear.var())
        else:
            mean, variance = block.fixed
        hidden = np.zeros(width)
        for out in range(width):
            normal = (linear[out] - mean[out]) / math.sqrt(variance[out] + 1e-5)
            hidden[out] = max(0.0, normal * block.scale[out] + block.shift[out])
    return hidden


def interpolation(knots: Sequence[float], value: float) -> list[tuple[int, float]]:
    """Return the knots around a value with their weights; beyond the ends the end counts alone."""
    if value <= knots[0]:
        return [(0, 1.0)]
    for i in range(1, len(knots)):
        if value <= knots[i]:
            part = (value - knots[i - 1]) / (knots[i] - knots[i - 1])
            return [(i - 1, 1.0 - part), (i, part)]
    return [(len(knots) - 1, 1.0)]


def expert_outputs(embedding: np.ndarray, weights: Sequence[np.ndarray], biases: Sequence[np.ndarray]) -> np.ndarray:
    """Eq. (2): o_ik of every expert k, (expert, output); each expert is a linear map."""
    outputs = np.zeros((len(weights), len(biases[0])))
    for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        for output in range(len(bias)):
            outputs[k, output] = bias[output] + sum(embedding[d] * weight[d, output] for d in range(len(embedding)))
    return outputs


def scores(
    embeddings: Sequence[np.ndarray],
    matrices: Sequence[Sequence[np.ndarray]],
    bias: Sequence[np.ndarray],
    *,
    is_diagonal: bool = False,
) -> list[np.ndarray]:
    """Eq. (3): phi_j for every feature j; ``matrices[i][j]`` is A_ij, zero off the diagonal in NAE-D."""
    found = []
    for j in range(len(bias)):
        phi = bias[j].copy()
        for i, embedding in enumerate(embeddings):
            if is_diagonal and i != j:
                continue
            phi = phi + matrices[i][j].T @ embedding
        found.append(phi)
    return found


def mask(phi: np.ndarray, n_active: int) -> np.ndarray:
    """M_j: 0 for the ``n_active`` largest scores, minus infinity for the rest; of equal ones the first stays."""
    ranked = sorted(range(len(phi)), key=lambda k: (-phi[k], k))
    found = np.full(len(phi), -math.inf)
    for k in ranked[:n_active]:
        found[k] = 0.0
    return found


def softmax(values: np.ndarray) -> np.ndarray:
    top = max(values)
    raised = [math.exp(value - top) for value in values]
    return np.array(raised) / sum(raised)


def relevance(phi: np.ndarray, n_active: int) -> np.ndarray:
    """Eq. (4): r_jk."""
    return softmax(phi + mask(phi, n_active))


def equal_relevance(phi: np.ndarray, n_active: int, frozen: np.ndarray | None = None) -> np.ndarray:
    """Eq. (25), NAE-E: ``frozen`` is phi*, equal to phi in value and constant under differentiation."""
    return softmax(phi - (phi if frozen is None else frozen) + mask(phi, n_active))


def gumbel_relevance(weights: np.ndarray, noise: np.ndarray, temperature: float = 0.1) -> np.ndarray:
    """Eq. (23), NAE-D in training: the relevance re-sampled with Gumbel noise."""
    logs = np.array([math.log(weight) if weight > 0 else -math.inf for weight in weights])
    return softmax((logs + noise) / temperature)


def aggregate(weights: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Eq. (5): o_i, one number per output."""
    total = np.zeros(outputs.shape[1])
    for k, weight in enumerate(weights):
        total += weight * outputs[k]
    return total


def bounds(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (8): the least and the largest expert."""
    return outputs.min(axis=0), outputs.max(axis=0)


def bounds_over_combinations(outputs: np.ndarray, n_active: int) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of NAE-E: extremes over every choice of ``n_active`` experts."""
    means = [outputs[list(chosen)].mean(axis=0) for chosen in combinations(range(len(outputs)), n_active)]
    return np.min(means, axis=0), np.max(means, axis=0)


@dataclass(frozen=True)
class Model:
    """One member: the parameters of the equations above, for n features."""

    embeddings: Sequence[Callable[[object], np.ndarray]]  # E_i, of a value of feature i
    expert_weights: Sequence[Sequence[np.ndarray]]  # [i][k] -> (d, output)
    expert_biases: Sequence[Sequence[np.ndarray]]  # [i][k] -> (output,)
    matrices: Sequence[Sequence[np.ndarray]]  # [i][j] -> A_ij, (d, expert), or (d, rank) for all j alike
    bias: Sequence[np.ndarray]  # [j] -> mu_j
    intercept: np.ndarray  # omega_0, (output,)
    n_active: int
    is_equal: bool = False
    is_diagonal: bool = False
    is_deep: bool = False
    mix: Sequence[np.ndarray] = field(default_factory=tuple)  # [j] -> (rank, expert)
    mix_bias: Sequence[np.ndarray] = field(default_factory=tuple)  # [j] -> (expert,)


@dataclass(frozen=True)
class Outcome:
    """Everything the equations give for one row."""

    prediction: np.ndarray  # (output,)
    contributions: list[np.ndarray]  # [i] -> (output,)
    outputs: list[np.ndarray]  # [i] -> (expert, output)
    weights: list[np.ndarray]  # [i] -> (expert,)
    lower: list[np.ndarray]  # [i] -> (output,)
    upper: list[np.ndarray]


def run(model: Model, row: Sequence[object]) -> Outcome:
    """Eqs. (1) to (6) and (8) for one row."""
    embeddings = [embedding(value) for embedding, value in zip(model.embeddings, row, strict=True)]
    phi = scores(embeddings, model.matrices, model.bias, is_diagonal=model.is_diagonal)
    if model.mix:
        phi = [_mix(model, phi[0], j) for j in range(len(row))]
    outputs, weights, contributions, lower, upper = [], [], [], [], []
    for i, embedding in enumerate(embeddings):
        outputs.append(expert_outputs(embedding, model.expert_weights[i], model.expert_biases[i]))
        weigh = equal_relevance if model.is_equal else relevance
        weights.append(weigh(phi[i], model.n_active))
        contributions.append(aggregate(weights[i], outputs[i]))
        if model.is_equal:
            least, most = bounds_over_combinations(outputs[i], model.n_active)
        else:
            least, most = bounds(outputs[i])
        lower.append(least)
        upper.append(most)
    prediction = model.intercept + sum(contributions)  # Eq. (6)
    return Outcome(prediction, contributions, outputs, weights, lower, upper)


def _mix(model: Model, hidden: np.ndarray, feature: int) -> np.ndarray:
    """The low-rank and deep gates: the sum lives in a few numbers, and a linear map gives the scores."""
    if model.is_deep:
        hidden = np.array([max(0.0, value) for value in hidden])
    return model.mix_bias[feature] + model.mix[feature].T @ hidden


def spread(outcomes: Sequence[Outcome]) -> float:
    """The penalty of Eq. (7) for lambda = 1, one output: variance of the experts with 1 / K."""
    n_rows, n_features = len(outcomes), len(outcomes[0].outputs)
    total = 0.0
    for outcome in outcomes:
        for i in range(n_features):
            values = outcome.outputs[i][:, 0]
            n_experts = len(values)
            mean = sum(values) / n_experts
            total += sum((value - mean) ** 2 for value in values) / n_experts
    return total / (n_features * n_rows)


def objective(outcomes: Sequence[Outcome], targets: Sequence[float], strength: float) -> float:
    """Eq. (7) with the squared loss and one output."""
    pairs = zip(outcomes, targets, strict=True)
    loss = sum((outcome.prediction[0] - target) ** 2 for outcome, target in pairs) / len(outcomes)
    return float(loss + strength * spread(outcomes))


def additivity(contributions: np.ndarray, values: np.ndarray, delta: float) -> list[float]:
    """Eq. (15) per feature: E(o_i | x_i) is the mean over the rows that share the value of x_i."""
    found = []
    for i in range(contributions.shape[1]):
        expected = np.zeros(len(values))
        for row in range(len(values)):
            same = [contributions[t, i] for t in range(len(values)) if values[t, i] == values[row, i]]
            expected[row] = sum(same) / len(same)
        found.append((expected.var() + delta) / (contributions[:, i].var() + delta))
    return found


def tightness(
    contributions: np.ndarray, lower: np.ndarray, upper: np.ndarray, values: np.ndarray, delta: float
) -> list[float]:
    """Eq. (18) per feature: the range in use over the range allowed, averaged over the rows."""
    found = []
    for i in range(contributions.shape[1]):
        ratios = []
        for row in range(len(values)):
            same = [contributions[t, i] for t in range(len(values)) if values[t, i] == values[row, i]]
            ratios.append((max(same) - min(same) + delta) / (upper[row, i] - lower[row, i] + delta))
        found.append(sum(ratios) / len(ratios))
    return found
