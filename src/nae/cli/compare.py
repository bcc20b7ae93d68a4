"""``nae compare``: models on the same rows, and how far they disagree."""

from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.table import Table

from nae._typing import AnyArray, IntArray
from nae.cli.columns import align, column_of, find_column
from nae.cli.console import digits, make_table, out
from nae.cli.options import load_model
from nae.cli.quality import Baseline, Measure, measure, read_target
from nae.cli.reading import read_file
from nae.cli.splits import find_test_rows
from nae.errors import ConfigError, DataError
from nae.tables import TableModel

__all__ = ["compare"]


def compare(
    files: Annotated[
        list[str], typer.Argument(metavar="MODEL MODEL… DATA", help="Models, then the table.", show_default=False)
    ],
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The target's column; the first model remembers its own.")
    ] = None,
) -> None:
    """Compare models on the same rows: quality, additivity, what matters, and how far they disagree."""
    if len(files) < 3:
        raise ConfigError("Compare takes at least two models and a table: nae compare m1.nae m2.nae data.csv.")
    paths, data = files[:-1], files[-1]
    models = [load_model(path) for path in paths]
    names = _short_names(paths)
    if len({tuple(sorted(model.classes)) for model in models}) > 1:
        raise DataError("Models must predict the same classes, or numbers all of them, to be compared.")
    if len(models[0].classes) == 2:  # whichever of the two each of them speaks for
        models = [model.for_class(models[0].classes[1]) for model in models]
    table = read_file(data)
    name = _target_name(models[0], table, target)
    y = read_target(column_of(table, name), name, classes=models[0].classes or None)
    rows = [align(table, model.schema) for model in models]
    shared = _shared_test_rows(models, rows, y)
    where = f"{table.num_rows:,} rows; a model may have been trained on them"
    if shared is not None:
        where = f"{len(shared):,} rows that no model was trained on"
        y, rows = y[shared], [part.take(shared) for part in rows]
    rule = Baseline.from_training(models[0])
    measures = [measure(model, part, y, baseline=rule) for model, part in zip(models, rows, strict=True)]
    console = out()
    console.print(_quality_table(names, models, measures, where), _importance_table(names, models), sep="\n")
    for (i, first), (j, second) in combinations(enumerate(models), 2):
        console.print(f"{names[i]} and {names[j]}: {_difference(first, rows[i], second, rows[j])}", soft_wrap=True)


def _target_name(model: TableModel, table: pa.Table, given: str | None) -> str:
    wanted = given or model.training.get("target")
    if wanted is None:
        raise ConfigError("The target's column must be known; the first model does not name it. Give --target.")
    return find_column(str(wanted), table, role="target column")


def _shared_test_rows(models: list[TableModel], rows: list[pa.Table], target: AnyArray) -> IntArray | None:
    """Return the rows that all models were tested on; None where one does not say, or none is left."""
    shared: IntArray | None = None
    for model, part in zip(models, rows, strict=True):
        found = find_test_rows(model, part, target)
        if found is None:
            return None
        shared = found if shared is None else np.intersect1d(shared, found)
    return shared if shared is not None and len(shared) else None


def _quality_table(names: list[str], models: list[TableModel], measures: list[list[Measure]], where: str) -> Table:
    table = make_table(f"On {where}", "", *names, "knows only the average")
    for found in zip(*measures, strict=True):
        table.add_row(found[0].name, *(digits(one.value) for one in found), digits(found[0].baseline))
    table.add_section()
    explanations = [model.explain_global() for model in models]
    table.add_row("additivity", *(f"{one.additivity:.2f}" for one in explanations), "")
    table.add_row("interaction share", *(f"{one.interaction_share:.2f}" for one in explanations), "")
    table.add_row("features", *(str(model.n_features) for model in models), "")
    table.add_row("members", *(str(model.n_members) for model in models), "")
    return table


def _importance_table(names: list[str], models: list[TableModel]) -> Table:
    """Return the share of each feature in the models' importances."""
    shares: list[dict[str, float]] = []
    for model in models:
        sizes = {shape.name: float(np.sqrt(np.mean(shape.importance**2))) for shape in model.explain_global().features}
        total = sum(sizes.values()) or 1.0
        shares.append({name: size / total for name, size in sizes.items()})
    every = {name for share in shares for name in share}
    features = sorted(every, key=lambda name: -max(share.get(name, 0.0) for share in shares))
    table = make_table("Share of importance", "feature", *names)
    for feature in features[:15]:
        table.add_row(feature, *(f"{100 * share[feature]:.1f} %" if feature in share else "–" for share in shares))
    return table


def _difference(first: TableModel, X: pa.Table, second: TableModel, other: pa.Table) -> str:
    if first.classes:
        one, two = first.predict_proba(X), second.predict_proba(other)
        same = float(np.mean(one.argmax(axis=1) == two.argmax(axis=1)))
        most = float(np.abs(one - two).max())
        return f"the same class for {100 * same:.1f} % of the rows; probabilities differ by {most:.3g} at most."
    one, two = first.predict(X), second.predict(other)
    gap = np.abs(one - two)
    return f"predictions differ by {digits(gap.mean())} on average and by {digits(gap.max())} at most."


def _short_names(paths: list[str]) -> list[str]:
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
