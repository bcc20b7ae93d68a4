"""Options of ``nae fit`` for what the model must never do, as parameters of the estimators."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from nae.cli.pairs import pairs
from nae.errors import ConfigError

__all__ = ["Bends", "Caps", "Directions", "Interactions", "Isolated", "Smoothness", "Unchanged", "parse_constraints"]

Directions = Annotated[
    list[str] | None,
    typer.Option("--monotone", help="A feature and its direction: income:+ (never lowers the score) or -. Repeatable."),
]
Caps = Annotated[
    list[str] | None,
    typer.Option(
        "--max-effect",
        help="A feature and the most that it alone may move the score: postcode:0.05, or postcode:5% with a log link. "
        "Repeatable.",
    ),
]
Isolated = Annotated[
    list[str] | None,
    typer.Option("--isolated", help="A feature that may change the effect of no other feature. Repeatable."),
]
Unchanged = Annotated[
    list[str] | None, typer.Option("--unchanged", help="A feature that no other feature may change. Repeatable.")
]
Interactions = Annotated[
    list[str] | None,
    typer.Option(
        "--interactions",
        help="pairwise, no_interactions, or a group of features that may interact: age,income. Repeatable.",
    ),
]
Bends = Annotated[
    list[str] | None,
    typer.Option("--curved", help="A feature and its bend: age:convex or dose:concave. Repeatable."),
]
Smoothness = Annotated[
    str | None,
    typer.Option("--smoothness", help="How much rough curves cost: a number, or auto (chosen by validation)."),
]
_WORDS = ("pairwise", "no_interactions")
_BENDS = ("convex", "concave")


def parse_constraints(
    *,
    monotone: Sequence[str] | None,
    max_effect: Sequence[str] | None,
    isolated: Sequence[str] | None,
    unchanged: Sequence[str] | None,
    interactions: Sequence[str] | None,
    curved: Sequence[str] | None,
    smoothness: str | None,
) -> dict[str, Any]:
    """Return the parameters that are asked for."""
    bends = pairs(curved, "--curved", example="age:convex")
    for name, bend in bends:
        if bend not in _BENDS:
            raise ConfigError(f"--curved must end in convex or concave; got {bend!r} for {name!r}.")
    found = {
        "monotonic_cst": dict(pairs(monotone, "--monotone", example="income:+")),
        "max_effect": {
            name: _number_or_word(cap) for name, cap in pairs(max_effect, "--max-effect", example="postcode:0.05")
        },
        "interaction_cst": _interactions(interactions, isolated or (), unchanged or ()),
        **{bend: [name for name, own in bends if own == bend] for bend in _BENDS},
        "smoothness": None if smoothness is None else _number_or_word(smoothness),
    }
    return {name: value for name, value in found.items() if value}


def _interactions(groups: Sequence[str] | None, isolated: Sequence[str], unchanged: Sequence[str]) -> Any:
    if groups and (isolated or unchanged):
        raise ConfigError("--interactions says who interacts with whom; leave out --isolated and --unchanged.")
    if groups and groups[0] in _WORDS:
        if len(groups) > 1:
            raise ConfigError(f"--interactions {groups[0]} stands alone; got {len(groups)} of them.")
        return groups[0]
    if groups:
        return [[name.strip() for name in group.split(",")] for group in groups]
    directed: dict[str, dict[str, list[str]]] = {}
    for side, names in (("changes", isolated), ("changed_by", unchanged)):
        for name in names:
            directed.setdefault(name, {})[side] = []
    return directed


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
