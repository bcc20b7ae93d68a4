"""``nae explain --recourse``: what would have to change in a row for a target to be reached, as text or JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow as pa
import typer

from nae.cli.beside import find_beside, note_offset
from nae.cli.columns import align
from nae.cli.console import out
from nae.cli.limits import match_names
from nae.cli.options import load_model
from nae.cli.pairs import number_in, split_feature
from nae.cli.reading import read_file
from nae.decisions import Recourse
from nae.errors import ConfigError, DataError
from nae.tables import TableModel

__all__ = [
    "ChangesOption",
    "CostOption",
    "DecreasingOption",
    "FixedOption",
    "IncreasingOption",
    "LikeOption",
    "RecourseOption",
    "Wanted",
]

RecourseOption = Annotated[
    str | None,
    typer.Option(
        "--recourse",
        help="What would have to change in the rows of DATA (or in one --row): for a class, for a number, or for an "
        "interval such as 0.6: (at least) or :20 (at most) of the prediction or of a probability.",
    ),
]
FixedOption = Annotated[
    list[str] | None, typer.Option("--fixed", help="A feature that --recourse does not change. Repeatable.")
]
IncreasingOption = Annotated[
    list[str] | None, typer.Option("--increasing", help="A feature that --recourse may only raise. Repeatable.")
]
DecreasingOption = Annotated[
    list[str] | None, typer.Option("--decreasing", help="A feature that --recourse may only lower. Repeatable.")
]
CostOption = Annotated[
    list[str] | None,
    typer.Option("--cost", help="A feature and what its changes cost times as much: savings:2. Repeatable."),
]
LikeOption = Annotated[
    str | None, typer.Option("--like", help="A table: --recourse leads only to pairs of values that occur in its rows.")
]
ChangesOption = Annotated[int, typer.Option("--changes", help="The most features that --recourse changes at once.")]


@dataclass(frozen=True)
class Wanted:
    """What is asked on the command line."""

    target: str
    fixed: Sequence[str] | None
    increasing: Sequence[str] | None
    decreasing: Sequence[str] | None
    cost: Sequence[str] | None
    like: str | None
    changes: int
    output: str | None

    def show(self, model: str, data: str | None, *, row: int | None, offset: list[str] | None, as_json: bool) -> None:
        """Print the ways of one row, or of all rows."""
        if data is None:
            raise ConfigError("--recourse needs a table: nae explain m.nae rows.csv --recourse approved.")
        tables, table = load_model(model), read_file(data)
        if row is not None and not 1 <= row <= table.num_rows:
            raise DataError(f"--row must be in [1, {table.num_rows}]; got {row}.")
        rows = range(table.num_rows) if row is None else [row - 1]
        found = self._ways(tables, table, rows, offset)
        if as_json:
            content = [one.to_dict() for one in found]
            text = json.dumps(content if row is None else content[0], ensure_ascii=False, allow_nan=False)
            out().print(text, soft_wrap=True)
            return
        for at, one in zip(rows, found, strict=True):
            out().print(f"Row {at + 1}: {one.now_text} The target: {one.target}.\n{one.text}\n", soft_wrap=True)

    def _ways(
        self, model: TableModel, table: pa.Table, rows: Sequence[int], offset: list[str] | None
    ) -> list[Recourse]:
        base = find_beside(table, offset, None).offset_of(table)
        if base is None:
            note_offset(model)
        aligned, asked = align(table, model.schema), self.asked(model)
        return [
            model.recourse(aligned.slice(at, 1), offset=None if base is None else base[at : at + 1], **asked)
            for at in rows
        ]

    def asked(self, model: TableModel) -> dict[str, Any]:
        """Return the arguments of the method."""
        costs = [split_feature(word, model.feature_names, "--cost", example="savings:2") for word in self.cost or ()]
        return {
            "target": _target(model, self.target),
            "output": self.output,
            "fixed": match_names(self.fixed, model),
            "increasing": match_names(self.increasing, model),
            "decreasing": match_names(self.decreasing, model),
            "costs": {name: number_in(cost, "--cost", example="savings:2") for name, cost in costs},
            "like": None if self.like is None else align(read_file(self.like), model.schema),
            "k": self.changes,
        }


def _target(model: TableModel, word: str) -> Any:
    """Return a class, a number, or an interval."""
    if word in model.classes:
        return word
    low, colon, high = word.partition(":")
    try:
        ends = [float(end) if end.strip() else None for end in (low, high)]
    except ValueError:
        return word
    return (ends[0], ends[1]) if colon else word if model.classes else ends[0]
