"""``nae certify``: prove statements about a model from its tables, or find inputs that refute them."""

from typing import Annotated

import typer
from rich.table import Table

from nae.cli.columns import match_name
from nae.cli.console import digits, make_table, out
from nae.cli.options import Json, ModelFile, load_model
from nae.cli.pairs import number_in, pairs
from nae.explanation import Certificates

__all__ = ["certify"]


def certify(
    model: ModelFile,
    *,
    monotone: Annotated[
        list[str] | None,
        typer.Option(help="A feature and its direction: income:+ (never lowers the score) or income:-. Repeatable."),
    ] = None,
    max_effect: Annotated[
        list[str] | None,
        typer.Option(help="A feature and the most that it alone may move the score: postcode:0.05. Repeatable."),
    ] = None,
    isolated: Annotated[
        list[str] | None, typer.Option(help="A feature that changes the effect of no other feature. Repeatable.")
    ] = None,
    unchanged: Annotated[
        list[str] | None, typer.Option(help="A feature that no other feature changes. Repeatable.")
    ] = None,
    curved: Annotated[
        list[str] | None,
        typer.Option(help="A feature and the shape of the score: age:convex or age:concave. Repeatable."),
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="No output is above the next one, such as quantiles that never cross.")
    ] = False,
    output: Annotated[
        str | None, typer.Option("--class", help="The class or target that the statements are about.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove statements for any input, or refute them; without a statement, what the fit was made to keep.

    The exit code is 0 if all are proven, and 1 if any is not.
    """
    tables = load_model(model)
    if output is not None and len(tables.classes) == 2:
        tables, output = tables.for_class(output), None
    names = tables.feature_names
    found = tables.certify(
        monotone={
            match_name(name, names) or name: sign for name, sign in pairs(monotone, "--monotone", example="income:+")
        },
        max_effect={
            match_name(name, names) or name: number_in(value, "--max-effect", example="postcode:0.05")
            for name, value in pairs(max_effect, "--max-effect", example="postcode:0.05")
        },
        isolated=[match_name(name, names) or name for name in isolated or ()],
        unchanged=[match_name(name, names) or name for name in unchanged or ()],
        curved={
            match_name(name, names) or name: shape for name, shape in pairs(curved, "--curved", example="age:convex")
        },
        ordered=ordered,
        output=output,
    )
    console = out()
    if as_json:
        console.print(found.to_json(), soft_wrap=True)
    else:
        console.print(_table(found))
        for one in found.certificates:
            console.print(one.sentence, soft_wrap=True)
    raise typer.Exit(0 if found.all_proven else 1)


def _table(found: Certificates) -> Table:
    table = make_table("What holds for any input", "statement", "verdict", "limit", "at most", "found", "tolerance")
    for one in found.certificates:
        reached = "" if one.found is None else digits(one.found)
        table.add_row(one.claim, one.verdict, digits(one.limit), digits(one.bound), reached, digits(one.tolerance))
    return table
