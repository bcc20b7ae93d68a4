"""What the commands that fit on this machine share: training that Ctrl-C can end, and the remarks on the model."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nae._words import counted
from nae.cli.console import out, say
from nae.cli.progress import Watch, watch_training
from nae.cli.quality import quality_table
from nae.cli.recipe import Recipe, make_estimator
from nae.quality import Quality
from nae.tables import TableModel

if TYPE_CHECKING:
    from nae.estimators import NAEClassifier, NAERegressor

__all__ = ["show_result", "train_estimator"]


def train_estimator(
    X: pa.Table, recipe: Recipe, fit: Callable[[Any, Watch], Any], *, is_classes: bool
) -> "tuple[NAEClassifier | NAERegressor, bool]":
    """Call ``fit`` with the estimator of a recipe. Return the estimator, and whether Ctrl-C ended training early."""
    estimator = make_estimator(X, recipe, is_classes=is_classes)
    with watch_training(recipe.time_limit, is_quiet=recipe.is_quiet) as watch:
        estimator.set_params(callbacks=[watch])
        fit(estimator, watch)
    estimator.set_params(callbacks=None)  # a model file cannot hold a function
    return estimator, watch.is_interrupted


def show_result(model: TableModel, quality: Quality, *, n_test: int, is_interrupted: bool) -> None:
    """Print how training ended and how good the model is."""
    training = model.training
    how = "Ctrl-C" if is_interrupted else training.stopped
    trained = counted(training.n_epochs or 0, "epoch")
    say(f"trained for {trained} and kept the best, epoch {training.best_epoch} ({how}).")
    where = counted(n_test, "test row") if n_test else "the training rows: there are too few to test"
    console = out()
    console.print(quality_table(f"Quality on {where}", quality))
    explanation = model.explain_global()
    console.print(
        f"weighted additivity {explanation.additivity_weighted:.2f} "
        f"(mean over features {explanation.additivity:.2f})   interaction share {explanation.interaction_share:.2f}   "
        f"cancellation {explanation.cancellation:.2f}"
    )
    best = ", ".join(shape.name for shape in explanation.ranked()[:5])
    console.print(f"most important features: {best}")
