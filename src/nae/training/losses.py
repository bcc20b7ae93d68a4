"""Losses: what they are for, and their values, slopes and excesses in numpy. Engines have their own, with gradients.

Scores have shape (row, output, member). Losses of several outputs are averaged over the outputs. Outputs are those of
several targets, or several quantiles of one target: then every output has a level of its own. The *excess* of a row
tells how the intercept of a finished model is found: at the right one, it adds up to zero. It is prediction minus
target if totals are to match, and otherwise the slope of the loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nae._typing import AnyArray, Array
from nae.errors import ConfigError, did_you_mean
from nae.links import LINKS
from nae.parameters import NumberParameters

__all__ = ["LOSSES", "ROBUST", "Derivatives", "Loss", "make_loss", "read_levels"]

Derivatives = tuple[Array, Array, Array]  # the loss, its slope in the score, and its curvature
Formula = Callable[[Array, Array], Derivatives]  # score, target -> of every number
Excess = Callable[[Array, Array], tuple[Array, Array]]  # score, target -> excess, slope; (B, O) each

_LEAST_ERROR = 0.05  # where the slope of a loss is straight, a parabola of this width stands for it
_LEAST_CURVATURE = 1e-4


@dataclass(frozen=True)
class Loss:
    """A loss, its link, and the targets it is for."""

    name: str
    link: str
    formula: Formula | None  # None where the target is the number of a class, and every class has a score
    excess: Excess  # weighted, it adds up to zero once the model is balanced
    domain: str = "any"  # 'any', 'non-negative' or 'positive'
    is_scaled: bool = False  # the target is standardised
    option: tuple[str, float | tuple[float, ...]] | None = None  # its parameter, as the estimator calls it

    @property
    def has_classes(self) -> bool:
        """Whether the target is the number of a class. Every class has a score then, and they are treated together."""
        return self.formula is None

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the outputs, where these are several quantiles of one target; else nothing."""
        own = None if self.option is None else self.option[1]
        return own if isinstance(own, tuple) else ()

    def options(self, n_outputs: int) -> tuple[float, ...]:
        """Return the parameter of every output; 0 without one."""
        own = 0.0 if self.option is None else self.option[1]
        return own if isinstance(own, tuple) else (own,) * n_outputs

    def per_row(self, score: Array, target: Array) -> Array:
        """Return the loss of every row and member, (B, O, M), target -> (B, M)."""
        if self.formula is None:
            return _cross_entropy(score, target)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.formula(score, target[..., None])[0].mean(axis=1))

    def derivatives(self, score: Array, target: Array) -> tuple[Array, Array]:
        """Return slope and curvature of every row's loss along each of its scores, (B, O, M).

        Where a loss of the distance to a number has a corner or a straight side, the curvature is that of a parabola
        with the same slope. Classes are treated one by one.
        """
        if self.formula is None:
            shares = _softmax(score)
            slope = shares - (target[:, None] == np.arange(score.shape[1]))[..., None]
            return slope, np.maximum(shares * (1 - shares), _LEAST_CURVATURE)
        n_outputs = score.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            _, slope, curvature = self.formula(score, target[..., None])
            slope, curvature = slope / n_outputs, curvature / n_outputs
            if self.is_scaled:
                distance = np.maximum(np.abs(score - target[..., None]), _LEAST_ERROR)
                curvature = np.maximum(curvature, np.abs(slope) / distance)
        return slope, np.maximum(curvature, _LEAST_CURVATURE)


def _squared(score: Array, target: Array) -> Derivatives:
    error = score - target
    return error**2, 2 * error, np.full_like(error, 2.0)


def _residual(score: Array, target: Array) -> tuple[Array, Array]:
    return score - target, np.ones_like(score)


def _absolute(score: Array, target: Array) -> Derivatives:
    error = score - target
    return np.abs(error), np.sign(error), np.zeros_like(error)


def _huber(delta: float) -> Formula:
    def formula(score: Array, target: Array) -> Derivatives:
        error = score - target
        size = np.abs(error)
        is_near = size <= delta
        value = np.where(is_near, 0.5 * error**2, delta * (size - 0.5 * delta))
        return value, np.clip(error, -delta, delta), is_near.astype(error.dtype)

    return formula


def _clipped(delta: float) -> Excess:
    def excess(score: Array, target: Array) -> tuple[Array, Array]:
        error = score - target
        return np.clip(error, -delta, delta), (np.abs(error) < delta).astype(np.float64)

    return excess


def _pinball(quantile: float | Array) -> Formula:
    def formula(score: Array, target: Array) -> Derivatives:
        error = target - score
        slope = 0.5 - quantile - 0.5 * np.sign(error)  # half-way where the error is zero
        return np.maximum(quantile * error, (quantile - 1) * error), slope, np.zeros_like(error)

    return formula


def _above(quantile: float | Array) -> Excess:
    """Return 1 - quantile for scores above the target and -quantile for those below; this has no slope."""

    def excess(score: Array, target: Array) -> tuple[Array, Array]:
        return np.where(score == target, 0.0, (score > target) - quantile), np.zeros_like(score)

    return excess


def _poisson(score: Array, target: Array) -> Derivatives:
    mean = np.exp(score)
    return mean - target * score, mean - target, mean


def _mean_excess(score: Array, target: Array) -> tuple[Array, Array]:
    """Return the excess of Poisson, gamma and Tweedie loss: an insurer's totals must be those of the claims."""
    mean = LINKS["log"].inverse(score)
    return mean - target, mean


def _gamma(score: Array, target: Array) -> Derivatives:
    ratio = target * np.exp(-score)
    return score + ratio, 1 - ratio, ratio


def _tweedie(power: float) -> Formula:
    def formula(score: Array, target: Array) -> Derivatives:
        above, below = np.exp((2 - power) * score), target * np.exp((1 - power) * score)
        value = above / (2 - power) - below / (1 - power)
        return value, above - below, (2 - power) * above - (1 - power) * below

    return formula


def _logistic(score: Array, target: Array) -> Derivatives:
    chance = LINKS["logit"].inverse(score)
    return np.logaddexp(0.0, score) - target * score, chance - target, chance * (1 - chance)


def _probability_excess(score: Array, target: Array) -> tuple[Array, Array]:
    chance = LINKS["logit"].inverse(score)
    return chance - target, chance * (1 - chance)


def _cross_entropy(score: Array, target: AnyArray) -> Array:
    most = score.max(axis=1)
    log_total = most + np.log(np.exp(score - most[:, None]).sum(axis=1))
    return np.asarray(log_total - np.take_along_axis(score, target[:, None, None], axis=1)[:, 0])


def _softmax(score: Array) -> Array:
    raised = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _class_excess(score: Array, target: Array) -> tuple[Array, Array]:
    """Return the excess of every class, and its probability: the slope is not diagonal and follows from these."""
    chance = LINKS["softmax"].inverse(score)
    return chance - (target[:, None] == np.arange(score.shape[1])), chance


LOSSES = ("squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie", "logistic", "cross-entropy")

ROBUST = ("absolute", "huber", "quantile")  # these bear a few targets far out, and so must what they are measured in


def read_levels(quantile: float | Sequence[float]) -> float | tuple[float, ...]:
    """Return a quantile, or several that ascend; a list of one is that one."""
    try:
        given = np.asarray(quantile, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    levels = tuple(np.atleast_1d(given).tolist())
    ends = (0.0, *levels, 1.0)
    if given.ndim > 1 or not levels or not all(map(float.__lt__, ends, ends[1:])):
        raise ConfigError(f"quantile must be in (0, 1), or a list of such numbers that ascend; got {quantile!r}.")
    return levels if len(levels) > 1 else levels[0]


def _make_pinball(quantile: float | Sequence[float]) -> Loss:
    """Return the loss of a quantile, or of several, with an output for each."""
    levels = read_levels(quantile)
    if isinstance(levels, tuple):
        formula, excess = _pinball(np.array(levels)[:, None]), _above(np.array(levels))
    else:
        formula, excess = _pinball(levels), _above(levels)
    return Loss("quantile", "identity", formula, excess, is_scaled=True, option=("quantile", levels))


def make_loss(
    name: str,
    *,
    quantile: float | Sequence[float] = NumberParameters.quantile,
    power: float = NumberParameters.tweedie_power,
    delta: float = NumberParameters.huber_delta,
) -> Loss:
    """Return the loss called ``name`` with its parameter, if it has one."""
    if name not in LOSSES:
        raise ConfigError(f"loss must be one of {list(LOSSES)}; got {name!r}.{did_you_mean(name, LOSSES)}")
    if name == "tweedie" and not 1 < power < 2:
        raise ConfigError(f"tweedie_power must be in (1, 2); got {power}. Use loss='poisson' for 1 and 'gamma' for 2.")
    if name == "huber" and not delta > 0:
        raise ConfigError(f"huber_delta must be positive; got {delta}.")
    if name == "quantile":
        return _make_pinball(quantile)
    made = {
        "squared": Loss(name, "identity", _squared, _residual, is_scaled=True),
        "absolute": Loss(name, "identity", _absolute, _above(0.5), is_scaled=True),
        "huber": Loss(
            name, "identity", _huber(delta), _clipped(delta), is_scaled=True, option=("huber_delta", float(delta))
        ),
        "poisson": Loss(name, "log", _poisson, _mean_excess, domain="non-negative"),
        "gamma": Loss(name, "log", _gamma, _mean_excess, domain="positive"),
        "tweedie": Loss(
            name, "log", _tweedie(power), _mean_excess, domain="non-negative", option=("tweedie_power", float(power))
        ),
        "logistic": Loss(name, "logit", _logistic, _probability_excess),
        "cross-entropy": Loss(name, "softmax", None, _class_excess),
    }
    return made[name]
