"""``nae fit --ray``: fit the same model with the workers of a Ray cluster."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nae._words import counted
from nae.cli.console import say
from nae.cli.recipe import Recipe, Task, check_loss, check_positive_class, choose_task
from nae.cli.streaming import glance
from nae.scale import fit_members, fit_ray
from nae.scanning import scan
from nae.tables import TableModel

if TYPE_CHECKING:
    from nae.estimators import NAEClassifier, NAERegressor

__all__ = ["fit_on_cluster", "train_members"]


def train_members(
    estimator: "NAEClassifier | NAERegressor", X: pa.Table, y: Any, recipe: Recipe, **given: Any
) -> "NAEClassifier | NAERegressor":
    """Fit an estimator whose members are jobs of the recipe's cluster."""
    if not recipe.is_quiet:
        say(f"training the members as jobs of the Ray at {recipe.cluster}.")
    return fit_members(estimator, X, y, address=recipe.cluster, **given)


def fit_on_cluster(
    data: Sequence[str], target: str, recipe: Recipe, address: str, *, ignore: Sequence[str]
) -> TableModel:
    """Fit on a cluster and return the model; remarks go to the terminal."""
    task, reason = _choose_task(data, target, recipe)
    check_loss(recipe, is_classes=task is Task.classification)
    check_positive_class(recipe, is_classes=task is not Task.regression)
    given: dict[str, Any] = {
        "additivity": recipe.additivity,
        "effort": recipe.effort,
        "bounds": recipe.bounds,
        "n_members": recipe.n_members,
        "max_epochs": recipe.max_epochs,
        "time_limit": recipe.time_limit,
        "loss": recipe.loss,
        "quantile": recipe.quantile or None,
        "class_weight": recipe.class_weight,
        "n_jobs": recipe.n_jobs,
        "positive_class": recipe.positive_class,
        "feature_types": dict.fromkeys(recipe.categories, "category") or None,
        "random_state": recipe.seed,
        **dict(recipe.settings),
    }
    if not recipe.is_quiet:
        if reason:
            say(f"{reason}.")
        say(f"training on the Ray at {address} with all rows; each member validates on rows of its own.")
    model = fit_ray(
        data[0] if len(data) == 1 else list(data),
        target,
        {name: value for name, value in given.items() if value is not None},
        task=task.value,
        ignore=ignore,
        sample_weight=recipe.beside.weight,
        offset=recipe.beside.offset or None,
        address=address,
    )
    if not recipe.is_quiet:
        facts = model.training
        trained = counted(facts.n_epochs or 0, "epoch")
        say(f"trained for {trained} and kept epoch {facts.best_epoch} ({facts.stopped}).")
    summary = replace(recipe.beside.remembered_in(model.training), target=target)
    return replace(model, training=summary)


def _choose_task(data: Sequence[str], target: str, recipe: Recipe) -> tuple[Task, str]:
    """Return the task and the reason for it. The first rows decide, if this machine can read them and they vary."""
    if recipe.task is not Task.auto or any("://" in path for path in data):
        return recipe.task, ""
    files = scan(list(data), on_bad_rows="skip")  # the cluster reports rows that cannot be parsed
    column = glance(files, files.find(target))
    if len(column.drop_null().unique()) < 2:  # the files may be sorted by the target
        return recipe.task, ""
    is_classes, reason = choose_task(recipe.task, column, target)
    return (Task.classification if is_classes else Task.regression), reason
