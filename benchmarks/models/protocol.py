"""The protocol of a model of the suite."""

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
    """The limits that are the same for all models."""

    threads: int = 2
    seed: int = 0
    n_trees: int = 3000
    """Largest number of trees of a boosted model. CatBoost, whose trees grow more slowly, gets two thirds of it."""
    device: str = "cpu"
    """The device for networks: 'cpu' or 'cuda'. Trees and linear models use the CPU."""
    max_epochs: int | None = None
    """Largest number of epochs of a network of the literature. If None, that of its recipe."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator with the scikit-learn interface, and a function that prepares its tables."""

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
    """A way to fit a table. Packages are imported when it is used."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules it needs. They are imported before the clock starts."""

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit the training rows. The model may use the validation rows in any way, but must not use the test rows."""
