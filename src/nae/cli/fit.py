"""``nae fit``: fit a model to a table, write it to a file, and print how good it is."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from nae._typing import Array, IntArray
from nae._words import counted, sized
from nae.cli.beside import Beside, find_beside
from nae.cli.columns import check_finite, column_of, find_column, remarks
from nae.cli.console import say
from nae.cli.constraints import (
    Bends,
    Caps,
    Directions,
    Interactions,
    Isolated,
    Smoothness,
    Unchanged,
    parse_constraints,
)
from nae.cli.options import (
    DataFiles,
    OffsetColumns,
    OnBadRows,
    WeightColumn,
    parse_additivity,
    parse_class_weight,
    parse_duration,
    parse_quantiles,
)
from nae.cli.quality import read_target
from nae.cli.reading import is_streamed, read_file
from nae.cli.recipe import Recipe, Share, Task, choose_task, make_estimator
from nae.cli.splits import Split, describe_split, split_rows
from nae.cli.training import show_result, train_estimator
from nae.cli.writing import check_apart, check_folder
from nae.encoding.columns import is_missing
from nae.errors import ConfigError, DataError
from nae.quality import measure
from nae.recipes import NUMBERS
from nae.scanning import scan
from nae.scanning.files import find_paths

if TYPE_CHECKING:
    from nae.estimators import NAEClassifier, NAERegressor

__all__ = ["fit", "fit_table"]


def fit(
    data: DataFiles,
    *,
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.", show_default=False)],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The model file. Default: the table's name with .nae.")
    ] = None,
    task: Annotated[Task, typer.Option(help="Predict numbers or classes; auto looks at the column.")] = Task.auto,
    loss: Annotated[str | None, typer.Option(help="Loss of a regression: squared, poisson, gamma, …")] = None,
    quantile: Annotated[
        list[str] | None,
        typer.Option(help="A quantile to predict, such as 0.9. Several, repeated or as 0.05,0.5,0.95, never cross."),
    ] = None,
    positive_class: Annotated[
        str | None,
        typer.Option(
            help="For two classes: the one that scores and explanations speak for. Default: the last by name."
        ),
    ] = None,
    additivity: Annotated[
        str | None, typer.Option(help="Required additivity from 0 to 1 (1 is an additive model), or auto.")
    ] = None,
    effort: Annotated[str, typer.Option(help="Time spent on accuracy: quick, normal or best.")] = Recipe.effort,
    members: Annotated[
        int | None,
        typer.Option(
            help=f"Number of networks that are averaged. Default: {NUMBERS.n_members}, or what --effort says."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Largest number of passes over the rows.")] = None,
    time_limit: Annotated[str | None, typer.Option(help="Longest time to train, such as 90s, 5m or 1h30m.")] = None,
    test_size: Annotated[float, typer.Option(help="Share of the rows kept for testing.")] = Recipe.test_size,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out. May be repeated.")] = None,
    category: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories. May be repeated.")
    ] = None,
    offset: OffsetColumns = None,
    weight: WeightColumn = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(help="Class weights: balanced, or CLASS=WEIGHT such as yes=3. May be repeated."),
    ] = None,
    monotone: Directions = None,
    max_effect: Caps = None,
    isolated: Isolated = None,
    unchanged: Unchanged = None,
    interactions: Interactions = None,
    curved: Bends = None,
    smoothness: Smoothness = None,
    jobs: Annotated[int | None, typer.Option(help="Number of threads.")] = None,
    on_bad_rows: OnBadRows = "error",
    cache: Annotated[str | None, typer.Option(help="Folder for the cache of a table that is read in pieces.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Read a single small file in pieces, too.")] = False,
    seed: Annotated[int, typer.Option(help="Random seed of the split and the model.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = Recipe.device,
    engine: Annotated[str, typer.Option(help="auto, native or torch.")] = Recipe.engine,
    bounds: Annotated[
        str, typer.Option(help="Bounds of contributions: data, what the rows have shown, or experts, the paper's.")
    ] = Recipe.bounds,
    ray: Annotated[
        str | None, typer.Option(help="Train on the Ray cluster at this address; without an address, on this machine.")
    ] = None,
    by: Annotated[
        Share, typer.Option(help="What a cluster distributes: the rows of the files, or the members of the model.")
    ] = Share.rows,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Fit a model to a table and write it to a file.

    The rows are split at random into training and test rows. Each member is validated on training rows of its own.
    Ctrl-C ends training and keeps the best model so far. Several files, a pattern, a folder or a file larger than a
    gigabyte are read in pieces and need not fit in memory.
    """
    path = _model_path(data, output)
    recipe = Recipe(
        task=task,
        loss="quantile" if loss is None and quantile else loss,
        quantile=parse_quantiles(quantile),
        positive_class=positive_class,
        additivity=parse_additivity(additivity),
        effort=effort,
        n_members=members,
        max_epochs=epochs,
        time_limit=None if time_limit is None else parse_duration(time_limit),
        test_size=test_size,
        categories=tuple(category or ()),
        beside=Beside(tuple(offset or ()), weight),
        class_weight=parse_class_weight(class_weight),
        n_jobs=jobs,
        seed=seed,
        device=device,
        engine=engine,
        bounds=bounds,
        is_quiet=quiet,
        settings=tuple(
            parse_constraints(
                monotone=monotone,
                max_effect=max_effect,
                isolated=isolated,
                unchanged=unchanged,
                interactions=interactions,
                curved=curved,
                smoothness=smoothness,
            ).items()
        ),
        cluster=ray,
    )
    if by is Share.members and (ray is None or stream or is_streamed(data)):
        raise ConfigError(
            "--by members needs --ray and one table that fits in memory; without it, rows are distributed."
        )
    if ray is not None and (on_bad_rows != "error" or cache is not None):
        raise ConfigError("--on-bad-rows and --cache are for tables read on this machine; leave them out with --ray.")
    unused = (test_size, device, engine) != (Recipe.test_size, Recipe.device, Recipe.engine)
    if ray is not None and by is Share.rows and unused:
        raise ConfigError(
            "--test-size, --device and --engine have no effect if a cluster distributes rows; leave them out."
        )
    model: Any
    if ray is not None and by is Share.rows:
        from nae.cli.cluster import fit_on_cluster

        model = fit_on_cluster(data, target, recipe, ray, ignore=ignore or ())
    elif stream or is_streamed(data):
        from nae.cli.streaming import fit_files

        files = scan(data, on_bad_rows=on_bad_rows, cache_folder=cache)
        model = fit_files(files.without(*(ignore or ())), target, recipe)
    else:
        table = read_file(data[0])
        dropped = {find_column(name, table) for name in ignore or ()}
        model = fit_table(table.select([name for name in table.column_names if name not in dropped]), target, recipe)
    model.save(path)
    if not quiet:
        _say_what_next(path, data)


def fit_table(table: pa.Table, target: str, recipe: Recipe) -> "NAEClassifier | NAERegressor":
    """Fit a model to a table, measure and describe it; remarks go to the terminal."""
    name = find_column(target, table, role="target column")
    beside = find_beside(table, recipe.beside.offset, recipe.beside.weight)
    features = [column for column in table.column_names if column not in (name, *beside.names)]
    if not features:
        raise DataError(f"The table must have columns besides the target {name!r}; it has none.")
    check_finite(table, table.column_names)
    is_classes, reason = choose_task(recipe.task, column_of(table, name), name)
    y = read_target(column_of(table, name), name, classes=() if is_classes else None)
    known = np.flatnonzero(~is_missing(y))
    split = split_rows(y[known], test_size=recipe.test_size, seed=recipe.seed, is_classes=is_classes)
    training, test = known[split.training], known[split.test]
    if not recipe.is_quiet:
        _describe(table, features, len(y) - len(known), split, reason)
    X = table.select(features)
    rows, known_target = X.take(training), y[training] if is_classes else pa.table({name: y[training]})
    offset, weight = beside.offset_of(table), beside.weight_of(table)
    given = {"offset": _take(offset, training), "sample_weight": _take(weight, training)}
    if recipe.cluster is not None:
        from nae.cli.cluster import train_members

        estimator = make_estimator(X, recipe, is_classes=is_classes)
        estimator = train_members(estimator, rows, known_target, recipe, **given)
        is_interrupted = False
    else:
        estimator, is_interrupted = train_estimator(
            X, recipe, lambda one, _: one.fit(rows, known_target, **given), is_classes=is_classes
        )
    model = estimator.model_
    rows = test if len(test) else training
    quality = measure(model, X.take(rows), y[rows], sample_weight=_take(weight, rows), offset=_take(offset, rows))
    if not recipe.is_quiet:
        show_result(model, quality, n_test=len(split.test), is_interrupted=is_interrupted)
    summary = replace(
        quality.remembered_in(beside.remembered_in(model.training)),
        target=name,
        n_test_rows=len(test),
        split=describe_split(X, y, test_size=recipe.test_size, seed=recipe.seed),
    )
    estimator.model_ = replace(model, training=summary)
    return estimator


def _take(values: Array | None, rows: IntArray) -> Array | None:
    return None if values is None else values[rows]


def _model_path(data: list[str], output: str | None) -> Path:
    if output == "-" or (output is None and data[0] == "-"):
        raise ConfigError("A model must be written to a file; give one with -o m.nae.")
    first = Path(data[0])
    name = first.name.split(".")[0].replace("*", "").replace("?", "") or first.absolute().parent.name
    path = Path(output if output is not None else f"{name}.nae")
    check_folder(str(path))
    if path.is_dir():
        raise ConfigError(f"A model must be written to a file; {path} is a folder.")
    if path.exists():  # a pattern may match many files, none of which is the model
        check_apart(str(path), find_paths(data) if is_streamed(data) else data)
    return path


def _describe(table: pa.Table, features: list[str], n_without: int, split: Split, reason: str) -> None:
    say(f"{counted(table.num_rows, 'row')}, {counted(len(features), 'feature')}; {reason}.")
    if n_without:
        say(f"left out, without a target: {counted(n_without, 'row')}.")
    for remark in remarks(table, features):
        say(f"note: {remark}")
    say(f"{counted(len(split.training), 'row')} to train and validate on, {len(split.test):,} kept for testing.")


def _say_what_next(path: Path, data: list[str]) -> None:
    is_many = is_streamed(data)
    table = "DATA" if data == ["-"] else " ".join(map(shlex.quote, data[:2])) + " …" * (len(data) > 2)
    say(f"wrote {path} ({sized(path.stat().st_size)}). Next:")
    steps = {
        f"nae explain {path}": "what the model does with every feature",
        f"nae predict {path} {table} -o {'out/' if is_many else 'out.csv'}": "predictions",
        f"nae serve {path}": "predictions and explanations over HTTP",
    }
    if not is_many:
        steps[f"nae report {path} {table} -o report.html"] = "a page with the model inside"
    width = max(map(len, steps))
    for command, what in steps.items():
        say(f"  {command:{width}}  {what}")
