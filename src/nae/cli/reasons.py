"""``nae explain --reasons``: the features that count most for an outcome, for every row of a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from nae.cli.beside import find_beside, note_offset
from nae.cli.columns import align, match_name
from nae.cli.console import digits, make_table
from nae.cli.reading import read_file
from nae.decisions import Reasons
from nae.errors import ConfigError, DataError
from nae.tables import TableModel

__all__ = [
    "Against",
    "AsText",
    "NReasons",
    "ReasonsAsked",
    "ReasonsFile",
    "Reference",
    "Tolerance",
    "Toward",
    "reasons_table",
]

NReasons = Annotated[
    int | None, typer.Option("--reasons", help="Give this many reasons for every row of DATA, or for --row alone.")
]
Toward = Annotated[
    str | None, typer.Option("--toward", help="What --reasons are for: a class; for a number, high or low.")
]
Against = Annotated[str | None, typer.Option("--against", help="What --reasons are against.")]
Reference = Annotated[
    str, typer.Option("--reference", help="What --reasons compare with: mean (the average row) or best (best values).")
]
Tolerance = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance", help="By how much a number may be off: age=1. --reasons say what survives. Repeatable."
    ),
]
ReasonsFile = Annotated[
    str | None, typer.Option("--reasons-file", help="A TOML file with the words of --reasons, and what may be named.")
]
AsText = Annotated[bool, typer.Option("--text", help="Print --reasons as sentences.")]


@dataclass(frozen=True)
class ReasonsAsked:
    """What is asked for on the command line."""

    n: int | None
    toward: str | None
    against: str | None
    output: str | None
    reference: str
    tolerance: Sequence[str]
    file: str | None
    unit: str
    as_text: bool

    def is_wanted(self, *, has_rows: bool, is_for_rows: bool, row: int | None) -> bool:
        """Return whether reasons are wanted. Words for them alone are an error if not."""
        if self.n is not None and not has_rows:
            raise ConfigError("--reasons needs a table: nae explain m.nae data.csv --reasons 4.")
        if self.n is not None and not is_for_rows:
            raise ConfigError("--reasons are for rows; leave out --feature and --pair.")
        if self.n is None:
            self._check_nothing(row)
        return self.n is not None

    def _check_nothing(self, row: int | None) -> None:
        if self.unit != "score" and row is None:
            raise ConfigError("--unit is for rows; give a table and --row or --reasons, or leave it out.")
        words = (self.toward, self.against, self.tolerance, self.file, self.as_text, self.reference != "mean")
        if any(words):
            raise ConfigError(
                "--toward, --against, --reference, --tolerance, --reasons-file and --text need --reasons 4."
            )

    def of(self, model: TableModel, data: str, row: int | None, offset: list[str] | None) -> Reasons:
        """Return the reasons of the rows of a file, or of one row."""
        table = read_file(data)
        if row is not None and not 1 <= row <= table.num_rows:
            raise DataError(f"--row must be in [1, {table.num_rows}]; got {row}.")
        picked = slice(0, table.num_rows) if row is None else slice(row - 1, row)
        part = table.slice(picked.start, picked.stop - picked.start)
        base = find_beside(table, offset, None).offset_of(part)
        if base is None:
            note_offset(model)
        is_class = bool(model.classes)
        found = model.reasons(
            align(table, model.schema).slice(picked.start, picked.stop - picked.start),
            k=self.n or 1,
            toward=self.toward or (self.output if is_class and self.against is None else None),
            against=self.against,
            output=None if is_class else self.output,
            reference=self.reference,
            tolerance=_amounts(self.tolerance, model),
            unit=self.unit,
            offset=base,
            wording=self.file,
        )
        return found if row is None else replace(found, rows=np.array([row - 1]))


def reasons_table(found: Reasons) -> Table:
    """Return a table of reasons, one line each."""
    title = f"What counts towards {found.outcome}, compared with {found.reference}"
    headers = (
        "row",
        "feature",
        "value",
        "counts",
        "own value",
        "context",
        "margin",
        "in members",
        "noise",
        "any context",
    )
    table = make_table(f"{title}, in percentage points" if found.unit == "probability" else title, *headers)
    columns, factor = found.columns_of_reasons, 100 if found.unit == "probability" else 1
    for at, row in enumerate(columns["row"]):
        numbers = [factor * float(columns[name][at]) for name in ("difference", "own", "context", "margin")]
        survives = [float(columns[f"place_{test}"][at]) for test in ("noise", "context")]
        agreeing = f"{columns['members_agreeing'][at]} of {found.n_members}"
        table.add_row(
            str(row + 1),
            str(columns["feature"][at]),
            str(columns["value"][at] or "missing"),
            *(digits(number, 3, signed=True) for number in numbers[:3]),
            "tied" if columns["tied"][at] else digits(numbers[3], 3),
            agreeing,
            *("" if margin != margin else "holds" if margin > 0 else "may change" for margin in survives),  # noqa: PLR0124
        )
    return table


def _amounts(words: Sequence[str], model: TableModel) -> dict[str, float]:
    found: dict[str, float] = {}
    for word in words:
        name, _, amount = word.partition("=")
        try:
            found[match_name(name, model.feature_names) or name] = float(amount)
        except ValueError:
            raise ConfigError(f"--tolerance must be a feature and an amount, such as age=1; got {word!r}.") from None
    return found
