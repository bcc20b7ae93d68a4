"""``nae show``: print the card of a model file."""

import json
from pathlib import Path

from nae._words import counted
from nae.card import Card, make_card
from nae.cli.console import digits, make_table, out
from nae.cli.options import Json, ModelFile, load_model
from nae.editing import history

__all__ = ["show"]


def show(model: ModelFile, as_json: Json = False) -> None:
    """Show the card of a model: its target, its features, its quality, and the limits of every feature's effect."""
    tables = load_model(model)
    card = make_card(tables)
    console = out()
    if as_json:
        console.print(json.dumps(card.to_dict(), ensure_ascii=False, allow_nan=False), soft_wrap=True)
        return
    console.print(f"{Path(model).name}: {card.sentence}", style="bold", soft_wrap=True)
    for line in (*_facts(card), *(f"edited: {one.summary}" for one in history(tables))):
        console.print(line, soft_wrap=True)
    table = make_table("Features", "name", "kind", "values", "missing seen", "reason for the kind")
    table.columns[-1].justify = "left"
    for feature in card.features:
        table.add_row(
            feature.name, feature.kind, feature.values, "yes" if feature.has_missing else "no", feature.reason
        )
    console.print(table)
    if card.promises:
        console.print("Promises", style="bold")
    for promise in card.promises:
        console.print(f"  {promise.sentence}", soft_wrap=True)
    console.print("Effect caps", style="bold")
    for sentence in card.caps:
        console.print(f"  {sentence}", soft_wrap=True)


def _facts(card: Card) -> list[str]:
    lines = [
        *([f"classes: {', '.join(card.classes)}"] if card.classes else []),
        *([f"score: the log-odds of {card.outputs[0]}"] if len(card.classes) == 2 else []),
        f"model: {counted(card.n_members, 'member')} of {counted(card.n_experts, 'expert')} per feature",
        f"gate: {card.gate}, {card.routing} routing, {card.link} link",
        *(f"{name}: {value}" for name, value in card.measures),
    ]
    if card.quality:
        found = ", ".join(f"{one.name} {digits(one.value)} (baseline {digits(one.baseline)})" for one in card.quality)
        lines.append(f"quality on held-out rows: {found}")
    if card.intervals is not None:
        lines.append(f"prediction {'sets' if card.classes else 'intervals'}: {card.intervals}")
    lines += [f"{name}: {value}" for name, value in card.training]
    return lines
