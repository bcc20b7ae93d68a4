"""``nae certify``: prove statements about a model from its tables, or find inputs that refute them."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from nae.cli.columns import match_name
from nae.cli.console import digits, make_table, out
from nae.cli.options import Json, ModelFile, load_model
from nae.errors import ConfigError
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
        list[str] | None, typer.Option(help="A feature that changes how no other feature counts. Repeatable.")
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
        monotone={match_name(name, names) or name: sign for name, sign in _pairs(monotone, "--monotone", "income:+")},
        max_effect={
            match_name(name, names) or name: _number(value)
            for name, value in _pairs(max_effect, "--max-effect", "postcode:0.05")
        },
        isolated=[match_name(name, names) or name for name in isolated or ()],
        unchanged=[match_name(name, names) or name for name in unchanged or ()],
        curved={match_name(name, names) or name: shape for name, shape in _pairs(curved, "--curved", "age:convex")},
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


def _pairs(words: Sequence[str] | None, option: str, example: str) -> list[tuple[str, str]]:
    """Return the name and the value of words such as ``income:+``."""
    found = []
    for word in words or ():
        name, colon, value = word.rpartition(":")
        if not (name and colon and value):
            raise ConfigError(f"{option} must be a feature, a colon and a value, such as {example}; got {word!r}.")
        found.append((name, value))
    twice = [name for name, _ in found if [one for one, _ in found].count(name) > 1]
    if twice:
        raise ConfigError(f"{option} takes every feature once; got {twice[0]!r} twice.")
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--max-effect must end in a number, such as postcode:0.05; got {text!r}.") from None
