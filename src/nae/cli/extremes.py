"""``nae extremes``: the largest and the smallest score that any input within limits can have."""

from typing import Annotated

import typer
from rich.table import Table

from nae.cli.console import digits, make_table, out
from nae.cli.limits import WithinOption, limits_of
from nae.cli.options import Json, ModelFile, load_model
from nae.explanation import Extremes
from nae.explanation.inputs import shown_value

__all__ = ["extremes"]


def extremes(
    model: ModelFile,
    *,
    within: WithinOption = None,
    budget: Annotated[
        int | None, typer.Option(help="Boxes into which the inputs are divided. By default, the model's size decides.")
    ] = None,
    output: Annotated[str | None, typer.Option("--class", help="The class or target whose score is meant.")] = None,
    as_json: Json = False,
) -> None:
    """Print the smallest and largest score of any input: a proven bound, and an input whose score is near it."""
    tables = load_model(model)
    if output is not None and len(tables.classes) == 2:
        tables, output = tables.for_class(output), None
    found = tables.extremes(within=limits_of(within, tables), budget=budget, output=output)
    console = out()
    if as_json:
        console.print(found.to_json(), soft_wrap=True)
    else:
        console.print(_table(found))


def _table(found: Extremes) -> Table:
    names = [f"{one.side} {one.output}" for one in found.extremes]
    table = make_table("The extremes of the score", "", *names)
    rows = {"found": "score", "proven bound": "bound", "gap": "gap"}
    for label, field in rows.items():
        table.add_row(label, *(digits(getattr(one, field)) for one in found.extremes))
    for i, name in enumerate(found.features):
        table.add_row(f"at {name}", *(shown_value(one.values[i]) for one in found.extremes))
    return table
