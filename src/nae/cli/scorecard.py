"""``nae scorecard`` and ``nae relativities``: a model as a table of points or factors."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.table import Table

from nae._files import write_whole
from nae.cli.columns import align
from nae.cli.console import make_table, out, say
from nae.cli.options import ModelFile, load_model
from nae.cli.reading import read_file
from nae.cli.writing import FORMATS, check_apart, check_folder, write_table
from nae.decisions import BinCard
from nae.errors import ConfigError
from nae.tables import TableModel

__all__ = ["relativities", "scorecard"]

_WRITERS: Mapping[str, Callable[[BinCard, str], None]] = {
    ".xlsx": lambda card, path: card.to_excel(path),
    ".html": lambda card, path: write_whole(path, card.to_html() or ""),
    ".json": lambda card, path: write_whole(path, card.to_json()),
}
_MaxBins = Annotated[int, typer.Option("--max-bins", help="Largest number of bins per feature; 0 sets no limit.")]
_Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", help="The output: .xlsx, .html, .json, or a table such as .csv. If absent, print the table."
    ),
]
_On = Annotated[str | None, typer.Option("--on", help="Rows on which table and model are compared.")]
_REFERENCE = "Where points are 0, or factors 1: average, lowest or common."


def scorecard(
    model: ModelFile,
    *,
    base: Annotated[float, typer.Option(help="The points at the odds.")] = 600.0,
    points_to_double: Annotated[float, typer.Option(help="The points that double the odds.")] = 20.0,
    odds: Annotated[float, typer.Option(help="The odds at the base.")] = 1.0,
    max_bins: _MaxBins = 8,
    reference: Annotated[str, typer.Option(help=_REFERENCE)] = "average",
    decimals: Annotated[int, typer.Option(help="Decimals of the points.")] = 0,
    side: Annotated[str | None, typer.Option("--class", help="The class that more points speak for.")] = None,
    on: _On = None,
    output: _Output = None,
) -> None:
    """Write a table of points for a model of two classes."""
    _check(output, model, on)
    tables = load_model(model)
    tables = tables if side is None else tables.for_class(side)
    card = tables.scorecard(
        _rows(tables, on),
        base=base,
        points_to_double=points_to_double,
        odds=odds,
        max_bins=max_bins or None,
        reference=_reference(reference),
        decimals=decimals,
    )
    _write(card, output)


def relativities(
    model: ModelFile,
    *,
    max_bins: _MaxBins = 8,
    reference: Annotated[str, typer.Option(help=_REFERENCE)] = "common",
    decimals: Annotated[int, typer.Option(help="Decimals of the factors.")] = 3,
    target: Annotated[str | None, typer.Option("--class", help="One of several targets.")] = None,
    on: _On = None,
    output: _Output = None,
) -> None:
    """Write a table of factors for a model with a log link."""
    _check(output, model, on)
    tables = load_model(model)
    card = tables.relativities(
        _rows(tables, on),
        max_bins=max_bins or None,
        reference=_reference(reference),
        decimals=decimals,
        output=target,
    )
    _write(card, output)


def _check(output: str | None, *sources: str | None) -> None:
    if output is None:
        return
    check_apart(output, [source for source in sources if source is not None])
    endings = {ending.lower() for ending in Path(output).suffixes}
    if output != "-" and not endings & {*_WRITERS, *FORMATS}:
        known = ", ".join((*_WRITERS, *FORMATS))
        raise ConfigError(f"The ending of {Path(output).name!r} must say the format, one of {known}.")
    check_folder(output)


def _rows(model: TableModel, on: str | None) -> pa.Table | None:
    return None if on is None else align(read_file(on), model.schema)


def _reference(word: str) -> Any:
    if word not in ("average", "lowest", "common"):
        raise ConfigError(f"--reference must be average, lowest or common; got {word!r}.")
    return word


def _write(card: BinCard, output: str | None) -> None:
    if output is None:
        out().print(_table(card))
        return
    writer = _WRITERS.get(Path(output).suffix.lower())
    if writer is None:
        write_table(
            pa.table({name: pa.array(list(values), from_pandas=True) for name, values in card.columns.items()}), output
        )
    else:
        writer(card, output)
    if output != "-":
        say(f"wrote {len(card)} features to {output}. {card.note}")


def _table(card: BinCard) -> Table:
    table = make_table(card.title, "feature", "value", "rows", card.unit, "least", "most")
    for feature in card.features:
        for at, one in enumerate(feature.bins):
            places = card.decimals
            limits = (f"{limit:.{places + 1}f}" for limit in (one.least, one.most))
            name = "" if at else feature.name
            table.add_row(name, one.label, f"{100 * one.share:.1f} %", f"{one.shown:.{places}f}", *limits)
    table.columns[1].justify = "left"
    table.caption = card.note
    return table
