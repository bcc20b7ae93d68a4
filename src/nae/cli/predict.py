"""``nae predict``: a table with predictions beside it."""

from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from nae.cli.columns import align
from nae.cli.console import say
from nae.cli.options import DataFile, ModelFile, load_model
from nae.cli.reading import read_file
from nae.cli.writing import check_output, write_table
from nae.tables import TableModel

__all__ = ["predict"]


def predict(
    model: ModelFile,
    data: DataFile,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where to write; the ending is the format, - is stdout.")
    ] = "-",
    form: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, parquet, arrow or jsonl, where there is no ending.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Also write the columns of the table.")] = False,
    contributions: Annotated[
        bool, typer.Option("--contributions", help="Also write what each feature contributed, with its bounds.")
    ] = False,
) -> None:
    """Predict every row of a table."""
    check_output(output, form=form)
    tables = load_model(model)
    table = read_file(data)
    rows = align(table, tables.schema)
    found = _predictions(tables, rows)
    if contributions:
        found |= _contributions(tables, rows)
    if keep:
        kept = {name: table.column(i) for i, name in enumerate(table.column_names) if name not in found}
        found = kept | found
    write_table(pa.table(found), output, form=form)
    if output != "-":
        say(f"wrote {table.num_rows:,} predictions to {output}.")


def _predictions(model: TableModel, rows: pa.Table) -> dict[str, pa.Array]:
    if model.classes:
        probability = model.predict_proba(rows)
        best = np.array(model.classes, dtype=object)[probability.argmax(axis=1)]
        columns = {"prediction": pa.array(best, type=pa.string())}
        return columns | {f"probability of {name}": pa.array(probability[:, i]) for i, name in enumerate(model.classes)}
    value = model.predict(rows)
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
