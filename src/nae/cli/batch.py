"""Predict file by file. Each output appears when it is complete and is not written again; memory does not grow."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from nae._files import whole_file
from nae._words import counted
from nae.cli.columns import find_column
from nae.cli.console import say
from nae.cli.writing import (
    COMPRESSIONS,
    DELIMITED,
    FORMATS,
    check_delimited,
    is_same_file,
    json_lines,
    without_formulas,
)
from nae.encoding.schema import Number
from nae.errors import ConfigError, DataError, did_you_mean
from nae.scanning import scan
from nae.scanning.bad_rows import BadRows
from nae.scanning.files import find_paths
from nae.tables import TableModel

__all__ = ["predict_files"]

_ENDINGS = {kind: ending for ending, kind in reversed(FORMATS.items())}
Predict = Callable[[pa.Table], pa.Table]


def predict_files(
    model: TableModel,
    sources: list[str],
    folder: Path,
    predict: Predict,
    *,
    numbers: Sequence[str] = (),
    form: str | None,
    on_bad_rows: str,
    quotes_formulas: bool = False,
) -> None:
    """Write the predictions of every file to a file of the same name in ``folder``; files that exist are kept.

    ``numbers`` names columns besides the features that must hold numbers.
    """
    if form is not None and form not in FORMATS.values():
        known = sorted(set(FORMATS.values()))
        raise ConfigError(f"--format must be one of {known}; got {form!r}.{did_you_mean(form, known, is_listed=True)}")
    if folder.suffix.lower() in FORMATS and not folder.is_dir():
        raise ConfigError(
            f"--output must be a folder if several files are predicted; got {folder}, the name of one file. "
            f"Choose a folder, such as {folder.with_suffix('')}/."
        )
    outputs = _plan(find_paths(sources), folder, form)
    if quotes_formulas:
        check_delimited({FORMATS[output.suffix] for output in outputs.values()})
    folder.mkdir(parents=True, exist_ok=True)
    n_rows, bad_rows = 0, BadRows()
    todo = {path: output for path, output in outputs.items() if not output.exists()}
    for path, output in todo.items():
        n_here = _predict_file(
            model,
            path,
            output,
            predict,
            numbers=numbers,
            on_bad_rows=on_bad_rows,
            bad_rows=bad_rows,
            quotes_formulas=quotes_formulas,
        )
        n_rows += n_here
        say(f"wrote {counted(n_here, 'prediction')} to {output}.")
    if len(todo) < len(outputs):
        say(f"kept {counted(len(outputs) - len(todo), 'file')} that existed already.")
    if bad_rows.count:
        say(f"note: {bad_rows}")
    if todo:
        say(f"{counted(n_rows, 'prediction')} in {counted(len(todo), 'file')}.")


def _plan(paths: list[str], folder: Path, form: str | None) -> dict[str, Path]:
    """Return the output path of every file. Two inputs with the same name are an error."""
    outputs: dict[str, Path] = {}
    for path in paths:
        kind = form or FORMATS.get(_ending(path), "csv")
        outputs[path] = folder / f"{_stem(path)}{_ENDINGS[kind]}"
    output, count = Counter(outputs.values()).most_common(1)[0]
    if count > 1:
        raise DataError(f"Files must have different names to be predicted into one folder; two become {output.name}.")
    same = next((path for path, output in outputs.items() if is_same_file(str(output), path)), None)
    if same is not None:
        raise ConfigError(f"Predictions must go to another folder than the tables; {same} would be overwritten.")
    return outputs


def _stem(path: str) -> str:
    """Return the name of a file without the endings that say how it is written."""
    name = Path(Path(path).name)
    name = name.with_suffix("") if name.suffix.lower() in COMPRESSIONS else name
    return str(name.with_suffix("") if name.suffix.lower() in FORMATS else name)


def _ending(path: str) -> str:
    endings = [ending.lower() for ending in Path(path).suffixes if ending.lower() in FORMATS]
    return endings[-1] if endings else ""


def _predict_file(
    model: TableModel,
    path: str,
    output: Path,
    predict: Predict,
    *,
    numbers: Sequence[str],
    on_bad_rows: str,
    bad_rows: BadRows,
    quotes_formulas: bool,
) -> int:
    rows = scan(path, on_bad_rows=on_bad_rows)
    if model.schema.has_names:
        header = pa.schema([(name, pa.null()) for name in rows.columns]).empty_table()
        try:
            found = {
                one.name: find_column(one.name, header, known=model.feature_names) for one in model.schema.features
            }
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        rows = rows.with_numbers(
            [found[one.name] for one in model.schema.features if isinstance(one, Number) and not one.is_boolean]
        )
    rows = rows.with_numbers([rows.find(name) for name in numbers])
    n_rows = 0
    with whole_file(output) as sink:  # an output that exists is complete
        writer = _Writer(sink, output.suffix, quotes_formulas=quotes_formulas)
        for batch in rows.batches(rows.columns, bad_rows):
            writer.write(predict(batch.table))
            n_rows += batch.table.num_rows
        writer.close()
    return n_rows


class _Writer:
    """Writes tables below each other to one file."""

    def __init__(self, sink: IO[bytes], ending: str, *, quotes_formulas: bool) -> None:
        self._sink, self._kind = sink, FORMATS[ending]
        self._quotes_formulas = quotes_formulas and self._kind in DELIMITED
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        if self._kind == "jsonl":
            self._sink.write(json_lines(table))
            return
        table = without_formulas(table) if self._quotes_formulas else table
        if self._writer is None:
            self._writer = self._open(table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, schema: pa.Schema) -> Any:
        if self._kind == "parquet":
            return pa.parquet.ParquetWriter(self._sink, schema)
        if self._kind == "arrow":
            return pa.ipc.new_file(self._sink, schema)
        options = pa.csv.WriteOptions(delimiter="\t" if self._kind == "tsv" else ",", quoting_style="needed")
        return pa.csv.CSVWriter(self._sink, schema, write_options=options)
