"""What the commands that fit share: the options as one value, and the choice between numbers and classes."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nae.cli.beside import Beside
from nae.cli.columns import find_column
from nae.errors import ConfigError, DataError
from nae.parameters import Parameters

if TYPE_CHECKING:
    from nae.estimators import NAEClassifier, NAERegressor

__all__ = ["Recipe", "Share", "Task", "check_loss", "check_positive_class", "choose_task", "make_estimator"]

_FEW_CLASSES = 0.5  # if more than this share of the rows are different texts, they are names and not classes


class Task(StrEnum):
    """The kind of target."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


class Share(StrEnum):
    """What is distributed over the workers of a cluster."""

    rows = "rows"
    members = "members"


@dataclass(frozen=True)
class Recipe:
    """How to fit: the options of the command line as values."""

    task: Task = Task.auto
    loss: str | None = None
    quantile: tuple[float, ...] = ()
    positive_class: str | None = None
    additivity: float | str | None = None
    effort: str = Parameters.effort
    n_members: int | None = None
    max_epochs: int | None = None
    time_limit: float | None = None
    test_size: float = 0.2
    categories: tuple[str, ...] = ()
    beside: Beside = field(default_factory=Beside)
    """The columns of offset and weights, as named on the command line."""
    class_weight: str | dict[str, float] | None = None
    n_jobs: int | None = None
    seed: int = 0
    device: str = Parameters.device
    engine: str = Parameters.engine
    bounds: str = Parameters.bounds
    is_quiet: bool = False
    settings: tuple[tuple[str, Any], ...] = ()
    """Further parameters of the estimator: constraints, or what a search found."""
    cluster: str | None = None
    """Address of the Ray cluster whose jobs train the members. If None, this process trains them."""


def choose_task(task: Task, column: pa.ChunkedArray, name: str) -> tuple[bool, str]:
    """Return whether classes are predicted, and the reason."""
    kind, n_different = column.type, len(column.drop_null().unique())
    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    if n_different == 0:
        raise DataError(f"The target {name!r} must hold values; all of them are missing.")
    if n_different == 1:
        raise DataError(f"The target {name!r} must vary; all its values are {column.drop_null()[0].as_py()!r}.")
    if task is Task.auto and is_number and n_different > 2:
        return False, f"{name!r} holds numbers, so numbers are predicted (--task classification for classes)"
    if task is Task.regression:
        if not is_number:
            _complain_about_text(column, name)
        return False, f"numbers are predicted for {name!r}"
    if not is_number and n_different > max(20, _FEW_CLASSES * len(column)):
        raise DataError(f"The target {name!r} must hold numbers or classes; it holds {n_different} different texts.")
    return True, f"{name!r} has {n_different} classes"


def _complain_about_text(column: pa.ChunkedArray, name: str) -> None:
    for row, value in enumerate(column.to_pylist(), start=1):
        try:
            float(value if value is not None else 0)
        except (TypeError, ValueError):
            raise DataError(
                f"The target {name!r} must hold numbers for a regression; row {row} holds {str(value)[:40]!r}."
            ) from None


def check_loss(recipe: Recipe, *, is_classes: bool) -> None:
    """Raise an error for a loss if classes are predicted, and for class weights if numbers are."""
    if is_classes and recipe.quantile:
        raise ConfigError("--quantile is for regressions; classes are predicted here. Leave it out.")
    if recipe.quantile and recipe.loss != "quantile":
        raise ConfigError(f"--quantile belongs to --loss quantile; got {recipe.loss!r}.")
    if is_classes and recipe.loss is not None:
        raise ConfigError(f"--loss is for regressions; classes are predicted here, got {recipe.loss!r}.")
    if not is_classes and recipe.class_weight is not None:
        raise ConfigError("--class-weight is for classes; numbers are predicted here. Leave it out, or use --weight.")


def check_positive_class(recipe: Recipe, *, is_classes: bool) -> None:
    """Raise an error for a positive class if numbers are predicted."""
    if not is_classes and recipe.positive_class is not None:
        raise ConfigError(
            f"--positive-class is for two classes; numbers are predicted here, got {recipe.positive_class!r}."
        )


def make_estimator(X: pa.Table, recipe: Recipe, *, is_classes: bool) -> "NAEClassifier | NAERegressor":
    """Return the estimator of a recipe for a table with the columns of ``X``."""
    from nae.estimators import NAEClassifier, NAERegressor

    check_loss(recipe, is_classes=is_classes)
    check_positive_class(recipe, is_classes=is_classes)
    given: dict[str, Any] = {
        "additivity": recipe.additivity,
        "effort": recipe.effort,
        "n_members": recipe.n_members,
        "device": recipe.device,
        "engine": recipe.engine,
        "bounds": recipe.bounds,
        "loss": recipe.loss,
        "quantile": recipe.quantile or None,
        "class_weight": recipe.class_weight,
        "n_jobs": recipe.n_jobs,
        "positive_class": recipe.positive_class,
        "feature_types": {find_column(one, X): "category" for one in recipe.categories} or None,
    }
    estimator = (NAEClassifier if is_classes else NAERegressor)(
        max_epochs=recipe.max_epochs,
        time_limit=recipe.time_limit,
        random_state=recipe.seed,
        **{key: value for key, value in given.items() if value is not None},
    )
    estimator.set_params(**dict(recipe.settings))
    return estimator
