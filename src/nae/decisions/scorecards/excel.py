"""A workbook of a table: its bins, what it costs in accuracy, and how to read it."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from nae._optional import require
from nae.decisions.scorecards.card import BinCard
from nae.decisions.scorecards.reading import sentences
from nae.explanation.serial import Column

__all__ = ["workbook_of"]

_WIDEST = 80  # characters of a column
_FINE = "0.0000"
_FORMATS = {"share": "0.0%"} | dict.fromkeys(
    ("effect", "lower", "upper", "binning_rms", "context_rms", "rounding", "largest"), _FINE
)


def workbook_of(card: BinCard) -> bytes:
    """Return the content of an Excel file."""
    openpyxl = require("openpyxl", extra="excel")
    book = openpyxl.Workbook()
    _fill(book.active, card.unit.capitalize(), card.columns)
    _fill(book.create_sheet(), "Differences", card.losses)
    _fill(book.create_sheet(), "How to read", {card.title: sentences(card)})
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


def _fill(sheet: Any, title: str, columns: Mapping[str, Column]) -> None:
    styles = require("openpyxl.styles", extra="excel")
    sheet.title = title
    for at, (name, values) in enumerate(columns.items(), start=1):
        for row, value in enumerate([name, *values], start=1):
            cell = sheet.cell(row=row, column=at)
            if isinstance(value, str):
                cell.value, cell.data_type = value, "s"  # a level such as '=1+1' is a text, not a formula
            elif np.isfinite(value):
                cell.value = float(value)
        sheet.cell(row=1, column=at).font = styles.Font(bold=True)
        widest = max(len(str(value)) if isinstance(value, str) else 8 for value in [name, *values])
        sheet.column_dimensions[sheet.cell(row=1, column=at).column_letter].width = min(widest, _WIDEST) + 2
        for row in range(2, len(values) + 2):
            sheet.cell(row=row, column=at).number_format = _FORMATS.get(name, "General")
            sheet.cell(row=row, column=at).alignment = styles.Alignment(wrap_text=True, vertical="top")
    sheet.freeze_panes = "A2"
