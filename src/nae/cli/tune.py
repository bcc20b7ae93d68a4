"""``nae tune``: search for settings, show what additivity costs, and fit the chosen settings."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from nae._files import whole_file
from nae._typing import AnyArray
from nae._words import counted
from nae.cli.beside import Beside, find_beside
from nae.cli.columns import check_finite, column_of, find_column
from nae.cli.console import make_table, out, say
from nae.cli.fit import fit_table
from nae.cli.options import DataFile, OffsetColumns, WeightColumn, parse_duration
from nae.cli.quality import read_target
from nae.cli.reading import read_file
from nae.cli.recipe import Recipe, Task, check_loss, choose_task
from nae.cli.splits import split_rows
from nae.cli.writing import check_apart, check_folder
from nae.encoding.columns import is_missing
from nae.errors import ConfigError, MissingDependencyError
from nae.tuning import STUDY_FILE, Trial, TuningResult

if TYPE_CHECKING:
    from nae.estimators import NAEClassifier, NAERegressor

__all__ = ["tune"]

_PICTURE = "front.png"


def tune(
    data: DataFile,
    *,
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.", show_default=False)],
    folder: Annotated[
        str, typer.Option("--folder", "-f", help="The folder of the study. A study that is already there is continued.")
    ] = "study",
    trials: Annotated[int, typer.Option(help="Number of settings to try, including those of earlier calls.")] = 30,
    seeds: Annotated[int, typer.Option(help="Number of fits of each setting, which is judged by their mean.")] = 1,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Fit the chosen settings and write the model there.")
    ] = None,
    best: Annotated[
        bool,
        typer.Option("--best", help="Choose the smallest loss, not the most additive trial within one standard error."),
    ] = False,
    task: Annotated[Task, typer.Option(help="Predict numbers or classes; auto looks at the column.")] = Task.auto,
    loss: Annotated[str | None, typer.Option(help="Loss of a regression: squared, poisson, gamma, …")] = None,
    members: Annotated[int, typer.Option(help="Number of members in a trial; one is enough to compare settings.")] = 1,
    epochs: Annotated[int | None, typer.Option(help="Largest number of passes over the rows.")] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Start no further trial after this time, such as 10m or 2h.")
    ] = None,
    test_size: Annotated[float, typer.Option(help="Share of the rows kept for testing, which no trial sees.")] = 0.2,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out. May be repeated.")] = None,
    offset: OffsetColumns = None,
    weight: WeightColumn = None,
    category: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories. May be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the split, the trials and the proposals.")] = 0,
    ray: Annotated[
        str | None,
        typer.Option(help="Run the fits on the Ray cluster at this address; without an address, on this machine."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and the result.")] = False,
) -> None:
    """Search for settings with two objectives: a small validation loss, and a high weighted additivity.

    Every trial is written to the folder at once, so the same command continues after Ctrl-C. The test rows are those
    that `nae fit` keeps with the same seed; no trial sees them.
    """
    if trials < 1:
        raise ConfigError(f"--trials must be at least 1; got {trials}.")
    if seeds < 1:
        raise ConfigError(f"--seeds must be at least 1; got {seeds}.")
    if output is not None:
        check_folder(output)
        check_apart(output, [data])
    recipe = Recipe(
        task=task, loss=loss, max_epochs=epochs, test_size=test_size, categories=tuple(category or ()), seed=seed,
        is_quiet=quiet, beside=Beside(tuple(offset or ()), weight),
    )  # fmt: skip
    table = read_file(data)
    dropped = {find_column(name, table) for name in ignore or ()}
    table = table.select([name for name in table.column_names if name not in dropped])
    estimator, X, y, beside = _question(table, target, recipe, n_members=members)
    given: dict[str, Any] = {
        **beside,
        "folder": folder,
        "n_trials": trials,
        "n_seeds": seeds,
        "time_limit": None if time_limit is None else parse_duration(time_limit),
        "seed": seed,
    }
    result = _search(estimator, X, y, given, ray=ray, is_quiet=quiet)
    chosen = result.best if best else result.chosen
    _show(result, chosen, folder)
    if output is not None:
        settings = tuple((name, value) for name, value in chosen.params.items() if value is not None)
        fit_table(table, target, replace(recipe, settings=settings, cluster=ray)).save(output)
        say(f"wrote {output}")


def _question(
    table: pa.Table, target: str, recipe: Recipe, *, n_members: int
) -> "tuple[NAEClassifier | NAERegressor, pa.Table, AnyArray, dict[str, Any]]":
    """Return an estimator, and the training rows of the same split as in `nae fit`, with their offset and weight."""
    from nae.estimators import NAEClassifier, NAERegressor

    name = find_column(target, table, role="target column")
    check_finite(table, table.column_names)
    is_classes, reason = choose_task(recipe.task, column_of(table, name), name)
    y = read_target(column_of(table, name), name, classes=() if is_classes else None)
    known = np.flatnonzero(~is_missing(y))
    split = split_rows(y[known], test_size=recipe.test_size, seed=recipe.seed, is_classes=is_classes)
    training = known[split.training]
    if not recipe.is_quiet:
        say(
            f"{counted(len(training), 'row')} to train and validate on, {len(split.test):,} kept for testing; {reason}."
        )
    found = find_beside(table, recipe.beside.offset, recipe.beside.weight)
    rows = table.take(training)
    X = rows.select([column for column in table.column_names if column not in (name, *found.names)])
    beside = {"offset": found.offset_of(rows), "sample_weight": found.weight_of(rows)}
    given: dict[str, Any] = {
        "n_members": n_members,
        "max_epochs": recipe.max_epochs,
        "random_state": recipe.seed,
        "feature_types": {find_column(one, X): "category" for one in recipe.categories} or None,
    }
    check_loss(recipe, is_classes=is_classes)
    if is_classes:
        return NAEClassifier(**given), X, y[training], beside
    if recipe.loss is not None:
        given["loss"] = recipe.loss
    return NAERegressor(**given), X, y[training], beside


def _search(
    estimator: Any, X: pa.Table, y: AnyArray, given: dict[str, Any], *, ray: str | None, is_quiet: bool
) -> TuningResult:
    """Search on this machine, printing every trial, or on a cluster."""

    def tell(trial: Trial) -> None:
        if not is_quiet:
            words = f"validation {_loss(trial)}, weighted additivity {trial.additivity:.2f} ({trial.seconds:.0f} s)"
            say(f"trial {trial.number + 1} of {given['n_trials']}: {words}")

    if ray is not None:
        from nae.scale import tune_ray

        return tune_ray(estimator, X, y, address=ray, on_trial=tell, **given)
    from nae.tuning.study import tune as search

    return search(estimator, X, y, on_trial=tell, **given)


def _show(result: TuningResult, chosen: Trial, folder: str) -> None:
    names = list(chosen.params)
    table = make_table("Trials that no other trial beats", "trial", "validation", "weighted additivity", *names)
    for trial in result.front:
        mark = " *" if trial == chosen else ""
        values = [_short(trial.params[name]) for name in names]
        table.add_row(f"{trial.number + 1}{mark}", _loss(trial), f"{trial.additivity:.2f}", *values)
    out().print(table)
    out().print(result.code(chosen), soft_wrap=True)
    failed = f", {result.n_failed} did not finish" if result.n_failed else ""
    say(f"{counted(len(result.trials), 'trial')}{failed}; the study is in {Path(folder) / STUDY_FILE}.")
    try:
        figure = result.plot().figure
    except MissingDependencyError as error:
        say(f"note: no picture: {error}")
        return
    with whole_file(Path(folder) / _PICTURE) as file:
        figure.savefig(file, dpi=150, bbox_inches="tight")
    say(f"what additivity costs: {Path(folder) / _PICTURE}")


def _loss(trial: Trial) -> str:
    return f"{trial.loss:.4f}" + (f" ± {trial.deviation:.4f}" if trial.deviation else "")


def _short(value: Any) -> str:
    return "default" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
