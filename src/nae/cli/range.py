"""``nae range``: write a proven range of the prediction of every row, when some features are unknown."""

from typing import Annotated

import pyarrow as pa
import typer
from rich.table import Table

from nae.cli.beside import find_beside, note_offset
from nae.cli.console import digits, make_table, out, say
from nae.cli.limits import WithinOption, aligned_without, limits_of, match_names
from nae.cli.options import DataFile, ModelFile, OffsetColumns, load_model
from nae.cli.reading import read_file
from nae.cli.writing import check_apart, check_output, write_table
from nae.errors import DataError
from nae.explanation import Questions

__all__ = ["range_"]


def range_(
    model: ModelFile,
    data: DataFile,
    *,
    unknown: Annotated[
        list[str] | None,
        typer.Option("--unknown", help="A feature that may have any value, missing included. Repeatable."),
    ] = None,
    within: WithinOption = None,
    budget: Annotated[
        int,
        typer.Option(
            help="Boxes per row and end, into which unknown values are divided: more are narrower, and slower."
        ),
    ] = 32,
    ask: Annotated[
        int | None,
        typer.Option("--ask", help="Print which unknown feature to ask for next, for one row, counted from 1."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The output file, whose ending is its format; - is stdout.")
    ] = "-",
    form: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, parquet, arrow or jsonl, for outputs without an ending.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Also write the columns of the table.")] = False,
    offset: OffsetColumns = None,
) -> None:
    """Write a proven range of every row's score and prediction. The table need not have the unknown features."""
    check_output(output, form=form)
    check_apart(output, [model, data])
    tables = load_model(model)
    if not offset:
        note_offset(tables)
    names, limits = match_names(unknown, tables), limits_of(within, tables)
    table = read_file(data)
    rows = aligned_without(table, tables, [*(name for name in names if name in tables.feature_names), *limits])
    if ask is not None:
        if not 1 <= ask <= table.num_rows:
            raise DataError(f"--ask must be a row from 1 to {table.num_rows}; got {ask}.")
        asked = tables.next_question(rows.slice(ask - 1, 1), unknown=names, within=limits, budget=budget)
        out().print(_table(asked))
        return
    moved = find_beside(table, offset, None).offset_of(table)
    found = tables.predict_range(rows, unknown=names, within=limits, budget=budget, offset=moved)
    columns = {name: pa.array(values) for name, values in found.columns.items()}
    if found.classes:
        columns["certain"] = pa.array(found.certain, type=pa.string())
    kept = {name: table.column(i) for i, name in enumerate(table.column_names) if keep and name not in columns}
    write_table(pa.table(kept | columns), output, form=form)
    if output != "-":
        say(f"wrote {table.num_rows:,} ranges to {output}.")


def _table(asked: Questions) -> Table:
    shown = make_table(
        f"The range of the score is {digits(asked.width)} wide; ask next for", "feature", "then", "at worst", "narrows"
    )
    for one in asked.questions:
        shown.add_row(one.feature, digits(one.expected), digits(one.worst), f"{one.narrows:.0%}")
    return shown
