"""``nae fit`` for many files: the same as for one table, but the rows are never all in memory."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nae._words import counted
from nae.cli.beside import find_beside
from nae.cli.columns import find_column
from nae.cli.console import say
from nae.cli.quality import read_target
from nae.cli.recipe import Recipe, choose_task
from nae.cli.training import show_result, train_estimator
from nae.errors import ConfigError, DataError
from nae.quality import measure
from nae.scanning import Scan

if TYPE_CHECKING:
    from nae.estimators import NAEClassifier, NAERegressor

__all__ = ["fit_files", "glance"]

_GLANCE = 100_000  # rows that decide whether the target is numbers or classes
_TEST_ROWS = 200_000  # largest number of rows on which the quality is measured


def fit_files(scan: Scan, target: str, recipe: Recipe) -> "NAEClassifier | NAERegressor":
    """Fit a model to a scan, measure and describe it; remarks go to the terminal."""
    header = pa.schema([(name, pa.null()) for name in scan.columns]).empty_table()
    name = find_column(target, header, role="target column")
    beside = find_beside(header, recipe.beside.offset, recipe.beside.weight)
    features = header.drop_columns([name, *beside.names])
    if not 0 <= recipe.test_size < 1:
        raise ConfigError(f"--test-size must be in [0, 1); got {recipe.test_size:g}.")
    first = glance(scan, name)
    is_classes, reason = choose_task(recipe.task, first, name)
    if isinstance(recipe.class_weight, dict):
        recipe = replace(recipe, class_weight=_typed(recipe.class_weight, first, name))
    scan = scan.where_known(name)
    training, test = scan.split(recipe.test_size, seed=recipe.seed) if recipe.test_size else (scan, None)
    if not recipe.is_quiet:
        say(f"{counted(len(scan.files), 'file')}, {counted(features.num_columns, 'feature')}; {reason}.")
    estimator, is_interrupted = train_estimator(
        features,
        recipe,
        lambda one, watch: one.fit(
            training.with_progress(watch.show_pass),
            y=name,
            sample_weight=beside.weight,
            offset=list(beside.offset) or None,
        ),
        is_classes=is_classes,
    )
    model = estimator.model_
    facts = model.training
    rows = _sample(training if test is None else test, _TEST_ROWS, recipe.seed)
    y = read_target(rows.column(name), name, classes=model.classes if is_classes else None)
    quality = measure(
        model,
        rows.select(features.column_names),
        y,
        sample_weight=beside.weight_of(rows),
        offset=beside.offset_of(rows),
    )
    n_test = 0 if test is None else len(y)
    if not recipe.is_quiet:
        _say_left_out(facts.n_unknown_rows or 0, facts.n_rows or 0)
        show_result(model, quality, n_test=n_test, is_interrupted=is_interrupted)
    summary = quality.remembered_in(beside.remembered_in(facts))
    estimator.model_ = replace(model, training=replace(summary, target=name, n_test_rows=n_test))
    return estimator


def _typed(class_weight: dict[Any, float], column: pa.ChunkedArray, name: str) -> dict[Any, float]:
    """Return class weights by the labels' own type, because a scan does not convert labels to text."""
    labels = column.drop_null().unique()
    keys = read_target(pa.chunked_array([labels]), name, classes=())
    known = dict(zip(keys.tolist(), labels.to_pylist(), strict=True))
    return {known.get(label, label): weight for label, weight in class_weight.items()}


def glance(scan: Scan, name: str) -> pa.ChunkedArray:
    """Return the first values of a column."""
    parts, n_rows = [], 0
    for batch in scan.batches([name]):
        parts.append(batch.table)
        n_rows += batch.table.num_rows
        if n_rows >= _GLANCE:
            break
    if not parts:
        raise DataError("The files must hold rows; they hold none.")
    return pa.concat_tables(parts).column(name)


def _sample(scan: Scan, n_rows: int, seed: int) -> pa.Table:
    """Return ``n_rows`` random rows, or all rows if there are fewer."""
    random, share = np.random.default_rng(seed), 1.0
    found: list[pa.Table] = []
    for batch in scan.batches(scan.columns):
        found.append(batch.table.filter(pa.array(random.random(batch.table.num_rows) < share)))
        while sum(table.num_rows for table in found) > n_rows:  # from now on, keep every second row
            share /= 2
            found = [table.filter(pa.array(random.random(table.num_rows) < 0.5)) for table in found]
    if not found:
        raise DataError("No row is left to measure quality on; lower --test-size to 0.")
    return pa.concat_tables(found)


def _say_left_out(n_unknown: int, n_rows: int) -> None:
    say(f"trained on {counted(n_rows, 'row')}.")
    if n_unknown:
        say(f"left out, without a target: {counted(n_unknown, 'row')}.")
