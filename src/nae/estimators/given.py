"""The input of a fit: the estimator's parameters, its target, the rows, and the earlier fit of a warm start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.utils import check_random_state

from nae._typing import AnyArray
from nae.encoding.beside import read_weight
from nae.errors import DataError
from nae.estimators.reading import Expected, read_eval_set
from nae.estimators.rows import Rows, Task
from nae.estimators.settings import Settings, resolve
from nae.estimators.targets import Target
from nae.parameters import Parameters
from nae.tables.model import TableModel

__all__ = ["Before", "Given", "State"]

State = Mapping[str, AnyArray]  # the arrays of a network by name


@dataclass(frozen=True, eq=False)
class Before:
    """The earlier fit from which a warm start continues."""

    model: TableModel
    state: State

    def check(self, names: tuple[str, ...] | None, n_features: int, task: Task) -> None:
        """Raise an error if the features or the classes have changed."""
        model = self.model
        names = names or tuple(f"x{i}" for i in range(n_features))
        is_single = len(task.outputs) == model.n_outputs == 1  # the name of a single numeric target may change
        outputs = model.outputs if is_single else task.outputs
        classes = set(task.classes)  # the model may speak for the first of two classes
        if (names, outputs, classes) != (model.feature_names, model.outputs, set(model.classes)):
            raise DataError(
                "warm_start needs the features and classes of the fit before; they changed. "
                "Set warm_start=False for a cold start."
            )


@dataclass(frozen=True, eq=False)
class Given:
    """The arguments of one call of ``fit``. Only the parameters have been checked."""

    owner: str
    """The name of the estimator's class."""
    parameters: Parameters
    target: Target
    before: Before | None
    X: Any
    y: Any
    sample_weight: Any = None
    eval_set: Any = None
    offset: Any = None

    def settle(self, n_rows: int, *, total: float | None, n_features: int) -> Settings:
        """Return the settings for ``n_rows`` rows; ``total`` is their weight, or None if weights are not whole."""
        is_classes = self.target.has_classes
        return resolve(self.parameters, n_rows=n_rows, total=total, n_features=n_features, is_classes=is_classes)

    def draw_seed(self) -> int:
        """Return a random seed for training. A ``RandomState`` gives another seed each time."""
        return int(check_random_state(self.parameters.random_state).randint(2**31 - 1))

    def read_eval_set(self, task: Task, expected: Expected, *, has_offset: bool) -> Rows:
        """Return the rows of ``eval_set``."""
        table, y, sample_weight, offset = read_eval_set(self.eval_set)
        columns = expected.read(table)
        target = self.target.read_again(y, task)
        if len(target) != columns.n_rows or columns.n_rows == 0:
            raise DataError(f"eval_set must have one target per row; got {columns.n_rows} and {len(target)}.")
        if has_offset != (offset is not None):
            raise DataError(
                "offset must be given for the training rows and for eval_set, or for neither; "
                "pass eval_set=(X, y, sample_weight, offset)."
            )
        shift = task.read_offset(offset, columns.n_rows)
        return Rows(columns, target, read_weight(sample_weight, columns.n_rows), shift)
