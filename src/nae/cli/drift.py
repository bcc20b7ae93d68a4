"""``nae drift``: whether new rows still look like the training rows, with an exit code for a monitor."""

from typing import Annotated

import pyarrow as pa
import typer
from rich.table import Table

from nae.cli.beside import find_remembered
from nae.cli.columns import align, check_finite
from nae.cli.console import digits, make_table, out
from nae.cli.options import DataFile, Json, ModelFile, WeightColumn, load_model
from nae.cli.reading import read_file
from nae.monitoring import LEVEL, LIMIT, Check, Drift, FeatureDrift
from nae.tables import TableModel

__all__ = ["drift"]

_MOST = 20  # features in the table; --json has all


def drift(
    model: ModelFile,
    data: DataFile,
    *,
    limit: Annotated[
        float,
        typer.Option(
            help="The smallest PSI that is drift; for means, the distance in standard deviations of the score."
        ),
    ] = LIMIT,
    level: Annotated[
        float, typer.Option(help="The probability that anything is called drifted if nothing changed.")
    ] = LEVEL,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Rows to compare with. Default: the training rows, as the model remembers them."
        ),
    ] = None,
    weight: WeightColumn = None,
    as_json: Json = False,
) -> None:
    """Compare new rows with the training rows that the model remembers. No target is needed.

    The exit code is 0 if nothing drifted, and 1 if a feature or the score did.
    """
    tables = load_model(model)
    table = read_file(data)
    beside = find_remembered(tables, table, None, weight, is_measured=False)
    found = tables.drift(
        _rows(tables, table),
        sample_weight=beside.weight_of(table),
        reference=None if reference is None else _rows(tables, read_file(reference)),
        limit=limit,
        level=level,
    )
    console = out()
    if as_json:
        console.print(found.to_json(), soft_wrap=True)
    else:
        console.print(_table(found))
        console.print(found.text, soft_wrap=True)
    raise typer.Exit(int(found.has_drifted))


def _rows(tables: TableModel, table: pa.Table) -> pa.Table:
    rows = align(table, tables.schema)
    check_finite(rows, rows.column_names)
    return rows


def _table(found: Drift) -> Table:
    shown = found.ranked()[:_MOST]
    left = len(found) - len(shown)
    title = f"{found.n_rows:,} rows against {found.n_training_rows:,}: {found.verdict}"
    more = f" ({left} features that moved less are not shown)" if left else ""
    table = make_table(
        title + more, "feature", "verdict", "PSI", "by chance", "went from", "missing", "new", "contribution"
    )
    for one in shown:
        table.add_row(one.name, one.verdict, *_values(one), *_shares(one), _decimals(one.contribution.size))
    largest = max(found.score, key=lambda check: check.size)
    table.add_row("the score", found.score_verdict, "", "", _means(largest), "", "", _decimals(largest.size))
    return table


def _values(one: FeatureDrift) -> list[str]:
    values = one["values"]
    went = f"{one.label}: {one.label_then:.0%} to {one.label_now:.0%}" if one.label else _means(values)
    return [_decimals(values.size), _decimals(values.chance), went]


def _means(check: Check) -> str:
    return f"{digits(check.then)} to {digits(check.now)}"


def _shares(one: FeatureDrift) -> list[str]:
    missing = one["missing"]
    went = "" if missing.now == missing.then else f"{missing.then:.1%} to {missing.now:.1%}"
    return [went, f"{one.new_share:.1%}" if one.new_share > 0 else ""]


def _decimals(value: float) -> str:
    return f"{value:.3f}" if value < 10 else digits(value)
