"""What a model of the suite is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from benchmarks.datasets import Split, Task

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Budget", "Fitted", "Model"]


@dataclass(frozen=True)
class Budget:
    """What every model is given alike."""

    threads: int = 2
    seed: int = 0
    n_trees: int = 3000
    """Most trees of a boosted model; CatBoost, whose trees are slower to grow, gets two thirds of it."""
    device: str = "cpu"
    """Where networks are trained: 'cpu' or 'cuda'. Trees and linear models stay on the CPU."""
    max_epochs: int | None = None
    """Most epochs of a network of the literature, in place of its own number."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator with the scikit-learn interface, and how it wants its table."""

    estimator: Any
    task: Task
    prepare: Callable[["pd.DataFrame"], Any]

    def predict(self, X: "pd.DataFrame") -> NDArray[Any]:
        """Return the predicted numbers (row,), or the probabilities of the classes (row, class)."""
        table = self.prepare(X)
        found: NDArray[Any] = (
            self.estimator.predict(table) if self.task == "regression" else self.estimator.predict_proba(table)
        )
        return found


class Model(Protocol):
    """One way to fit a table. Packages are imported when it fits, not before."""

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules that must be there; imported before the clock starts."""

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit the training rows; the validation rows may be used as the model likes, the test rows not at all."""
