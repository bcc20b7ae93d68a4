"""``nae compare``: measure models on the same rows, and show how far they disagree."""

from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.table import Table

from nae._typing import AnyArray, Array, IntArray
from nae.cli.beside import find_remembered
from nae.cli.change import compare_versions
from nae.cli.columns import align, column_of
from nae.cli.console import digits, make_table, out
from nae.cli.options import Json, OffsetColumns, WeightColumn, load_model
from nae.cli.quality import find_target, read_target
from nae.cli.reading import read_file
from nae.cli.splits import find_test_rows
from nae.errors import ConfigError, DataError
from nae.quality import OF_ANY_LOSS, Criterion, Quality, measure
from nae.tables import TableModel

__all__ = ["compare"]


def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL MODEL… [DATA]", help="Models, then the table; or two models alone.", show_default=False
        ),
    ],
    *,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="The target's column. Default: the one that the first model remembers."),
    ] = None,
    offset: OffsetColumns = None,
    weight: WeightColumn = None,
    max_change: Annotated[
        float | None,
        typer.Option(help="Exit with 1 if the score may change by more between two models, in units of the score."),
    ] = None,
    on: Annotated[
        str | None, typer.Option(metavar="DATA", help="Measure the change on these rows, not for any input.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--class", help="The class or target whose score two models are compared by.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare models on the same rows: quality, additivity, importance of the features, and disagreement.

    Two models without a table: how much the score and every contribution change at most, proven for any input. The
    exit code is 1 if --max-change is given and exceeded.
    """
    is_pair = len(files) == 2 and all(name.endswith(".nae") for name in files)
    if is_pair or max_change is not None or on is not None:
        raise typer.Exit(compare_versions(files, rows=on, max_change=max_change, output=output, as_json=as_json))
    if len(files) < 3:
        raise ConfigError("Compare takes at least two models and a table: nae compare m1.nae m2.nae data.csv.")
    paths, data = files[:-1], files[-1]
    models = [load_model(path) for path in paths]
    names = _short_names(paths)
    if len({tuple(sorted(model.classes)) for model in models}) > 1:
        raise DataError("Models can be compared only if all predict the same classes, or all predict numbers.")
    if len(models[0].classes) == 2:  # each model may speak for either of the two classes
        models = [model.for_class(models[0].classes[1]) for model in models]
    table = read_file(data)
    name = find_target(models[0], table, target)
    y = read_target(column_of(table, name), name, classes=models[0].classes or None)
    rivals = [_rival(name, model, table, offset, weight) for name, model in zip(names, models, strict=True)]
    shared = _shared_test_rows(rivals, y)
    where = f"{table.num_rows:,} rows; a model may have been trained on them"
    if shared is not None:
        where = f"{len(shared):,} rows that no model was trained on"
        y, rivals = y[shared], [one.take(shared) for one in rivals]
    found = [_measure(one, y) for one in rivals]
    console = out()
    console.print(_quality_table(rivals, found, where), _importance_table(names, models), sep="\n")
    for first, second in combinations(rivals, 2):
        console.print(f"{first.name} and {second.name}: {_difference(first, second)}", soft_wrap=True)


@dataclass(frozen=True, eq=False)
class _Rival:
    """A model, and the rows it is measured on."""

    name: str
    model: TableModel
    rows: pa.Table
    offset: Array | None
    weight: Array | None

    def take(self, rows: IntArray) -> "_Rival":
        offset, weight = (None if part is None else part[rows] for part in (self.offset, self.weight))
        return replace(self, rows=self.rows.take(rows), offset=offset, weight=weight)


def _measure(rival: _Rival, target: AnyArray) -> Quality:
    return measure(rival.model, rival.rows, target, sample_weight=rival.weight, offset=rival.offset, n_resamples=0)


def _rival(name: str, model: TableModel, table: pa.Table, offset: list[str] | None, weight: str | None) -> _Rival:
    beside = find_remembered(model, table, offset, weight)
    return _Rival(name, model, align(table, model.schema), beside.offset_of(table), beside.weight_of(table))


def _shared_test_rows(rivals: list[_Rival], target: AnyArray) -> IntArray | None:
    """Return the rows that were test rows of all models. None if a model does not know its own, or no row is left."""
    shared: IntArray | None = None
    for one in rivals:
        found = find_test_rows(one.model, one.rows, target)
        if found is None:
            return None
        shared = found if shared is None else np.intersect1d(shared, found)
    return shared if shared is not None and len(shared) else None


def _quality_table(rivals: list[_Rival], found: list[Quality], where: str) -> Table:
    """Return the measures of all models. If their losses differ, only measures that can be compared are returned."""
    table = make_table(f"On {where}", "", *(one.name for one in rivals), "knows only the average")
    first = Criterion.of(rivals[0].model.training)
    each = [
        {one.name: one for one in quality if one.name in OF_ANY_LOSS or Criterion.of(rival.model.training) == first}
        for rival, quality in zip(rivals, found, strict=True)
    ]
    for name in dict.fromkeys(name for measures in each for name in measures):
        shown = [digits(measures[name].value) if name in measures else "–" for measures in each]
        rule = next(measures[name].baseline for measures in each if name in measures)
        table.add_row(name, *shown, digits(rule))
    table.add_section()
    models = [one.model for one in rivals]
    explanations = [model.explain_global() for model in models]
    table.add_row("weighted additivity", *(f"{one.additivity_weighted:.2f}" for one in explanations), "")
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


def _difference(first: _Rival, second: _Rival) -> str:
    if first.model.classes:
        one, two = (each.model.predict_proba(each.rows, offset=each.offset) for each in (first, second))
        same = float(np.mean(one.argmax(axis=1) == two.argmax(axis=1)))
        most = float(np.abs(one - two).max())
        return f"the same class for {100 * same:.1f} % of the rows; probabilities differ by {most:.3g} at most."
    one, two = (each.model.predict(each.rows, offset=each.offset) for each in (first, second))
    gap = np.abs(one - two)
    return f"predictions differ by {digits(gap.mean())} on average and by {digits(gap.max())} at most."


def _short_names(paths: list[str]) -> list[str]:
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
