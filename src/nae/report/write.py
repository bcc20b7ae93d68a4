"""Writing a report: read the rows, fit the model into a page, measure it, put it all into one file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nae._files import write_whole
from nae._typing import IntArray
from nae.encoding.cells import Cells
from nae.errors import ConfigError, UserError
from nae.explanation.reference import require_statistics
from nae.quality import MeasuredRows, Quality, measure_rows
from nae.report.page import build_page
from nae.report.payload import build_payload
from nae.report.reduction import PAGE_LIMIT, fit_into_page
from nae.report.rows import ReportRows, read_rows
from nae.tables.model import TableModel

__all__ = ["write_report"]


def write_report(
    model: TableModel,
    data: Any,
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    offset: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    title: str | None = None,
    max_rows: int = 500,
    row_numbers: Sequence[int] | IntArray | None = None,
) -> Path:
    """Write one HTML file that contains the model, explains it and lets a reader try it; return its path.

    The page needs no server, no network and no other file. It evaluates the model's own tables: its numbers are those
    of ``predict`` and ``explain_local``. It carries up to ``max_rows`` rows of ``data`` as they are.

    Parameters
    ----------
    model
        A saved or fitted model; an estimator's ``model_`` is taken.
    data
        A table with the model's features, best of rows that it was not trained on.
    path
        Where to write.
    target
        The column of ``data`` that holds the truth: the page then says how good the model is and shows errors.
    offset
        The column (or one per output) that is added to the score; those the model remembers unless given.
    sample_weight
        The column of weights that rows have where the model is measured.
    title
        The heading; a sentence about the target unless given.
    max_rows
        How many rows the page carries, evenly spread over the table; the quality is measured on all of them. With 0 it
        carries none, nor where rows lie together in the map of a pair.
    row_numbers
        What the page calls each row of ``data``: its place in the file it was taken from, say. Counted from 1 unless
        given, as ``nae explain --row`` counts.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nae import NAERegressor, datasets
    >>> X, y = datasets.multimodal(100)
    >>> model = NAERegressor(n_members=1, max_epochs=2, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     write_report(model.model_, {**X, "y": y}, f"{folder}/report.html", target="y").name
    'report.html'
    """
    table = getattr(model, "model_", model)
    if not isinstance(table, TableModel):
        raise UserError(f"A report needs a fitted model or its tables; got {type(model).__name__}.")
    if max_rows < 0:
        raise ConfigError(f"max_rows must not be negative; got {max_rows}.")
    require_statistics(table)
    rows = read_rows(table, data, target, offset=offset, sample_weight=sample_weight, row_numbers=row_numbers)
    cells = table.schema.locate(rows.columns, dtype=table.experts.dtype)
    fitted = fit_into_page(table, rows.columns, limit=PAGE_LIMIT)
    content = build_payload(
        table,
        fitted,
        rows,
        quality=_measure(table, cells, rows),
        title=title,
        max_rows=max_rows,
    )
    out = Path(path)
    write_whole(out, build_page(content))
    return out


def _measure(model: TableModel, cells: Cells, rows: ReportRows) -> Quality | None:
    """Return the quality on the rows whose truth is known; None where none is."""
    if rows.target is None or np.isnan(rows.target).any(axis=1).all():
        return None
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    return measure_rows(MeasuredRows.known(model, cells, rows.target, weight=weight, offset=rows.offset))
