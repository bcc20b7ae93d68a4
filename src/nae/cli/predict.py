"""``nae predict``: write the predictions for a table."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from nae._typing import Array
from nae.cli.batch import predict_files
from nae.cli.beside import find_beside, note_offset
from nae.cli.columns import align
from nae.cli.console import say
from nae.cli.doubts import doubts
from nae.cli.options import DataFiles, ModelFile, OffsetColumns, OnBadRows, load_model
from nae.cli.reading import is_streamed, read_file
from nae.cli.writing import check_apart, check_output, write_table
from nae.errors import ConfigError
from nae.tables import TableModel

__all__ = ["predict"]


def predict(
    model: ModelFile,
    data: DataFiles,
    *,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="The output file, whose ending is its format; - is stdout; a folder for several tables.",
        ),
    ] = "-",
    form: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, parquet, arrow or jsonl, for outputs without an ending.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Also write the columns of the table.")] = False,
    contributions: Annotated[
        bool, typer.Option("--contributions", help="Also write the contribution of each feature, with its bounds.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option("--interval", help="Also write an interval that holds the target for this share of rows: 0.9."),
    ] = None,
    classes: Annotated[
        float | None,
        typer.Option("--set", help="Also write a set of classes that holds the true one for this share of rows: 0.9."),
    ] = None,
    quote_formulas: Annotated[
        bool,
        typer.Option(
            "--quote-formulas",
            help="Write an apostrophe before text that a spreadsheet would take for a formula (CSV and TSV).",
        ),
    ] = False,
    offset: OffsetColumns = None,
    on_bad_rows: OnBadRows = "error",
) -> None:
    """Predict every row of a table, or of many files into a folder.

    Several tables are predicted into a folder, one output per table. If the command is run again, it keeps existing
    outputs; delete them to predict again.
    """
    is_many = is_streamed(data) or output.endswith("/") or Path(output).is_dir()
    if not is_many:
        check_output(output, form=form, quotes_formulas=quote_formulas)
        check_apart(output, [model, *data])
    tables = load_model(model)
    if not offset:
        note_offset(tables)

    def predicted(table: pa.Table) -> pa.Table:
        rows = align(table, tables.schema)
        shift = find_beside(table, offset, None).offset_of(table)
        found = _predictions(tables, rows, shift)
        found |= doubts(tables, rows, table, interval=interval, classes=classes, offset=shift)
        if contributions:
            found |= _contributions(tables, rows)
        if keep:
            kept = {name: table.column(i) for i, name in enumerate(table.column_names) if name not in found}
            found = kept | found
        return pa.table(found)

    if is_many:
        if output == "-" or Path(output).is_file():
            raise ConfigError(f"Predictions of several files must go to a folder, such as -o out/; got {output!r}.")
        predict_files(
            tables,
            data,
            Path(output),
            predicted,
            numbers=offset or (),
            form=form,
            on_bad_rows=on_bad_rows,
            quotes_formulas=quote_formulas,
        )
        return
    table = read_file(data[0])
    write_table(predicted(table), output, form=form, quotes_formulas=quote_formulas)
    if output != "-":
        say(f"wrote {table.num_rows:,} predictions to {output}.")


def _predictions(model: TableModel, rows: pa.Table, offset: Array | None) -> dict[str, pa.Array]:
    if model.classes:
        probability = model.predict_proba(rows, offset=offset)
        best = np.array(model.classes, dtype=object)[model.choose(probability)]
        columns = {"prediction": pa.array(best, type=pa.string())}
        return columns | {f"probability of {name}": pa.array(probability[:, i]) for i, name in enumerate(model.classes)}
    value = model.predict(rows, offset=offset)
    if model.n_outputs == 1:
        return {"prediction": pa.array(value)}
    return {f"prediction of {name}": pa.array(value[:, i]) for i, name in enumerate(model.outputs)}


def _contributions(model: TableModel, rows: pa.Table) -> dict[str, pa.Array]:
    found = model.contributions(rows)
    columns: dict[str, pa.Array] = {}
    for o, output in enumerate(model.outputs):
        suffix = "" if model.n_outputs == 1 else f" to {output}"
        for i, feature in enumerate(model.feature_names):
            for word, values in (("contribution", found.values), ("lower", found.lower), ("upper", found.upper)):
                part = values[:, i] if values.ndim == 2 else values[:, i, o]
                columns[f"{word} of {feature}{suffix}"] = pa.array(part)
        intercept = np.ravel(found.intercept)[o]
        columns[f"intercept{suffix}"] = pa.array(np.full(len(found), intercept))
    return columns
