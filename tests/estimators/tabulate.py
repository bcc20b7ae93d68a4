"""The tables of docs/parameters.md: ``python -m tests.estimators.tabulate`` writes them anew."""

import ast
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from nae import recipes
from nae.parameters import ClassParameters, NumberParameters, Parameters, Table
from nae.recipes import RECIPES, Recipe

__all__ = ["PAGE", "parameter_table", "recipe_table", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "parameters.md"
OWNERS: dict[type[Table], str] = {
    NumberParameters: "`NAERegressor`: ",
    ClassParameters: "`NAEClassifier`: ",
    Parameters: "",
}


def parameter_table() -> str:
    """Return a row per parameter: name, type, default and meaning."""
    rows = ["| parameter | type | default | |", "|---|---|---|---|"]
    for table, owner in OWNERS.items():
        for entry in table.entries():
            text = entry.text.replace("``", "`").replace(":func:`", "`").replace("|", "\\|")
            rows.append(f"| `{entry.name}` | {entry.rule.kind} | `{entry.default!r}` | {owner}{text} |")
    return "\n".join(rows)


def recipe_table() -> str:
    """Return a row per value of a recipe: name, what the recipes say, and meaning."""
    texts = field_texts()
    rows = [f"| | {' | '.join(RECIPES)} | |", f"|---|{'---|' * len(RECIPES)}---|"]
    for one in fields(Recipe):
        values = " | ".join(shown(getattr(recipe, one.name)) for recipe in RECIPES.values())
        rows.append(f"| `{one.name}` | {values} | {texts[one.name]} |")
    return "\n".join(rows)


def field_texts() -> dict[str, str]:
    """Return the text below every field of a recipe, which Python itself does not keep."""
    tree = ast.parse(Path(recipes.__file__).read_text())
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == Recipe.__name__)
    found = {}
    for one, after in pairwise(body):
        if isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr):
            found[ast.unparse(one.target)] = " ".join(ast.literal_eval(after.value).replace("``", "`").split())
    return found


def shown(value: Any) -> str:
    """Return a value as the table shows it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def with_tables(page: str) -> str:
    """Return the page with the tables as they are now."""
    for name, table in (("parameters", parameter_table()), ("recipes", recipe_table())):
        begin, end = f"<!-- begin of the {name} -->", f"<!-- end of the {name} -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
