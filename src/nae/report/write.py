"""Write a report: read the rows, reduce the model to the size of a page, measure it, and write one file."""

import os
from collections.abc import Mapping, Sequence
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
    recourse: Mapping[str, Any] | None = None,
) -> Path:
    """Write one HTML file that contains the model, explains it and lets a reader try it; return its path.

    The page needs no server, no network and no other file. It evaluates the model's own tables, so its numbers equal
    those of ``predict`` and ``explain_local``. It contains up to ``max_rows`` rows of ``data`` as they are.

    Parameters
    ----------
    model
        A fitted estimator, or a model loaded from a file.
    data
        A table with the model's features. Rows that the model was not trained on are best.
    path
        The file to write.
    target
        The column of ``data`` that holds the truth. With it, the page shows how good the model is, and its errors.
    offset
        The column that is added to the score, or one column per output. If None, the columns that the model remembers.
    sample_weight
        The column of row weights, used when the model is measured.
    title
        The heading. If None, a sentence about the target.
    max_rows
        The largest number of rows in the page, evenly spread over the table. The quality is measured on all rows. With
        0, the page contains no rows and no density of rows in the maps of pairs.
    row_numbers
        The number shown for each row of ``data``, for example its position in a file. If None, rows are counted from 1,
        as in ``nae explain --row``.
    recourse
        The arguments of ``recourse``, such as ``{"target": "approved", "fixed": ["age"]}``. With them, the page says
        what would have to change in the first 20 of its rows that do not reach the target.

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
        recourse=recourse,
    )
    out = Path(path)
    write_whole(out, build_page(content))
    return out


def _measure(model: TableModel, cells: Cells, rows: ReportRows) -> Quality | None:
    """Return the quality on the rows whose truth is known; None if there are none."""
    if rows.target is None or np.isnan(rows.target).any(axis=1).all():
        return None
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    return measure_rows(MeasuredRows.known(model, cells, rows.target, weight=weight, offset=rows.offset))
