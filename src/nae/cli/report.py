"""``nae report``: write one HTML page that contains the model."""

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from nae._typing import IntArray
from nae._words import sized
from nae.cli.beside import find_remembered
from nae.cli.columns import align, column_of, find_column, to_numbers
from nae.cli.console import say
from nae.cli.options import DataFile, ModelFile, OffsetColumns, WeightColumn, load_model
from nae.cli.quality import read_target
from nae.cli.reading import read_file
from nae.cli.recourse import (
    ChangesOption,
    CostOption,
    DecreasingOption,
    FixedOption,
    IncreasingOption,
    LikeOption,
    RecourseOption,
    Wanted,
)
from nae.cli.splits import find_test_rows
from nae.cli.writing import check_apart, check_folder
from nae.tables import TableModel

__all__ = ["report"]


def report(
    model: ModelFile,
    data: DataFile,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="The HTML file to write.")] = "report.html",
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="The target's column. Default: the one that the model remembers."),
    ] = None,
    offset: OffsetColumns = None,
    weight: WeightColumn = None,
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
    max_rows: Annotated[int, typer.Option(help="Largest number of rows of the table in the page.", min=0)] = 500,
    recourse: RecourseOption = None,
    fixed: FixedOption = None,
    increasing: IncreasingOption = None,
    decreasing: DecreasingOption = None,
    cost: CostOption = None,
    changes: ChangesOption = 3,
    like: LikeOption = None,
) -> None:
    """Write one HTML page that contains the model: shapes, what-if, pairs and rows. It needs no server.

    If the table is the one the model was fitted to, the page shows and measures only its test rows.
    """
    from nae.report import write_report

    check_folder(output)
    check_apart(output, [model, data])
    tables = load_model(model)
    table = read_file(data)
    name = _target_name(tables, table, target)
    beside = find_remembered(tables, table, offset, weight, is_measured=name is not None)
    rows = features = align(table, tables.schema)
    row_numbers = None
    for column in beside.names:
        if column not in rows.column_names:
            rows = rows.append_column(column, to_numbers(column_of(table, column), column))
    if name is not None:
        found = _test_rows(tables, features, column_of(table, name), name)
        rows = rows.append_column(name, column_of(table, name))
        if found is not None:
            rows, row_numbers = rows.take(found), found + 1  # counted from 1, as everywhere on the command line
        where = "all rows of the table" if found is None else f"{len(found):,} rows the model was not trained on"
        say(f"measuring on {where}{beside.words}.")
    wanted = Wanted(recourse or "", fixed, increasing, decreasing, cost, like, changes, None)
    write_report(
        tables,
        rows,
        output,
        target=name,
        offset=beside.offset or None,
        sample_weight=beside.weight,
        title=title,
        max_rows=max_rows,
        row_numbers=row_numbers,
        recourse=None if recourse is None else wanted.asked(tables),
    )
    say(f"wrote {output} ({sized(Path(output).stat().st_size)}); open it in a browser.")


def _target_name(model: TableModel, table: pa.Table, given: str | None) -> str | None:
    if given is not None:
        return find_column(given, table, role="target column")
    remembered = model.training.target
    if remembered is not None and remembered.strip() in {name.strip() for name in table.column_names}:
        return find_column(remembered, table)
    say("note: the table has no target, so the page cannot say how good the model is; --target names it.")
    return None


def _test_rows(model: TableModel, rows: pa.Table, column: pa.ChunkedArray, name: str) -> IntArray | None:
    return find_test_rows(model, rows, read_target(column, name, classes=model.classes or None))
