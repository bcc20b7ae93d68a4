"""Tables whose effects are known: curves, levels, and columns that have nothing to do with the target."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CASES", "Case", "Drawn", "draw"]

Numbers = NDArray[np.float64]

_CURVES: dict[str, Callable[[Numbers], Numbers]] = {
    "wave": lambda x: np.sin(4 * np.pi * x),
    "line": lambda x: 2 * (x - 0.5),
    "bump": lambda x: 2 * np.exp(-(((x - 0.6) / 0.12) ** 2)),
    "step": lambda x: 1.5 / (1 + np.exp(-40 * (x - 0.35))),
    "bowl": lambda x: 6 * (x - 0.4) ** 2,
}
_LEVELS = np.array(list("abcdef"))
_EFFECTS = np.array([0.0, 0.5, -0.5, 0.8, 0.0, -0.8])


@dataclass(frozen=True)
class Case:
    """One way to draw a table."""

    label: str
    n_rows: int
    loss: str = "squared"
    correlation: float = 0.0  # of the ranks of all numbers
    noise: str = "even"  # 'even', or 'uneven': it grows with the line
    has_product: bool = False  # of wave and line: the truth is not additive
    is_empty: bool = False  # all columns are noise


@dataclass(frozen=True)
class Drawn:
    """A table, its target, and the true effect of every feature in every row, zero on average."""

    X: dict[str, NDArray[Any]]
    y: NDArray[Any]
    effects: dict[str, Numbers]

    @property
    def idle(self) -> set[str]:
        """The features without any effect."""
        return {name for name, effect in self.effects.items() if not effect.any()}


CASES = (
    Case("300 rows", 300),
    Case("1,000 rows", 1000),
    Case("4,000 rows", 4000),
    Case("1,000 rows, correlated features", 1000, correlation=0.5),
    Case("1,000 rows, uneven noise", 1000, noise="uneven"),
    Case("two classes, 1,000 rows", 1000, loss="logistic"),
    Case("two classes, 4,000 rows", 4000, loss="logistic"),
    Case("counts, 2,000 rows", 2000, loss="poisson"),
    Case("with an interaction, 1,000 rows", 1000, has_product=True),
    Case("nothing but noise, 300 rows", 300, is_empty=True),
)


def draw(case: Case, seed: int) -> Drawn:
    """Return a table: five curves, two idle numbers, a category with effects and an idle one."""
    random = np.random.default_rng(seed)
    size = 0.0 if case.is_empty else 1.0
    names = [*_CURVES, "idle 0", "idle 1"]
    X: dict[str, NDArray[Any]] = dict(zip(names, _uniform(random, case, len(names)).T, strict=True))
    effects = {name: size * _CURVES[name](X[name]) if name in _CURVES else np.zeros(case.n_rows) for name in names}
    for name, sizes in (("level", size * _EFFECTS), ("idle level", 0 * _EFFECTS)):
        at = random.integers(0, len(_LEVELS), case.n_rows)
        X[name], effects[name] = _LEVELS[at], sizes[at]
    effects = {name: effect - effect.mean() for name, effect in effects.items()}
    score = np.sum(list(effects.values()), axis=0)
    if case.has_product:
        score = score + 3 * np.sin(4 * np.pi * X["wave"]) * (X["line"] - 0.5)
    return Drawn(X, _target(random, case, score, X["line"]), effects)


def _uniform(random: np.random.Generator, case: Case, n_columns: int) -> Numbers:
    """Return numbers in (0, 1), through normal ones with the same correlation of all pairs."""
    from scipy.special import ndtr

    own = random.standard_normal((case.n_rows, n_columns))
    shared = random.standard_normal((case.n_rows, 1))
    return np.asarray(ndtr(np.sqrt(case.correlation) * shared + np.sqrt(1 - case.correlation) * own))


def _target(random: np.random.Generator, case: Case, score: Numbers, line: Numbers) -> NDArray[Any]:
    if case.loss == "logistic":
        return np.where(random.uniform(size=len(score)) < 1 / (1 + np.exp(-score)), "yes", "no")
    if case.loss == "poisson":
        return random.poisson(np.exp(score - 1)).astype(np.float64)
    spread = 1.0 if case.noise == "even" else 0.3 + 1.4 * line
    return np.asarray(score + spread * random.standard_normal(len(score)))
