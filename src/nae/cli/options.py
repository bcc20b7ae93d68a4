"""Options that several commands share, and words on the command line that become numbers."""

import math
import re
from pathlib import Path
from typing import Annotated

import typer

from nae.errors import ConfigError, FormatError, did_you_mean
from nae.tables import TableModel, load

__all__ = [
    "DataFile",
    "DataFiles",
    "Json",
    "ModelFile",
    "OffsetColumns",
    "OnBadRows",
    "WeightColumn",
    "load_model",
    "parse_additivity",
    "parse_class_weight",
    "parse_duration",
    "parse_quantiles",
]

ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file, such as m.nae.", show_default=False)]
DataFile = Annotated[str, typer.Argument(metavar="DATA", help="A table; - reads stdin.", show_default=False)]
DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="A table; - reads stdin. Several files, a pattern or a folder are one table that is read in pieces.",
        show_default=False,
    ),
]
OnBadRows = Annotated[
    str,
    typer.Option("--on-bad-rows", help="Rows of several files that cannot be parsed: error, or skip (leave them out)."),
]
OffsetColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--offset",
        help="A column that is added to the score: with a log link, the logarithm of the exposure. "
        "Repeated where there is one per class or target.",
    ),
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", help="A column of weights: 2 is the row twice, 0 is the row absent.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Return seconds: ``90``, ``90s``, ``5m``, ``1h30m``."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([smhd]?)\s*", text.strip().lower())
    is_whole = re.fullmatch(r"(?:\d+(?:\.\d+)?\s*[smhd]?\s*)+", text.strip().lower()) is not None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not is_whole or any(unit == "" for _, unit in parts[1:]) or not 0 < seconds < math.inf:
        raise ConfigError(f"A duration must look like 90s, 5m or 1h30m; got {text!r}.")
    return seconds


def parse_additivity(text: str | None) -> float | str | None:
    """Return the text as a number if it is one. The estimator checks all other words."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def parse_class_weight(words: list[str] | None) -> str | dict[str, float] | None:
    """Return ``balanced``, or the weight of every named class, given as ``yes=3``."""
    if not words or words == ["balanced"]:
        return words[0] if words else None
    found = {}
    for word in words:
        name, _, weight = word.rpartition("=")
        try:
            found[name] = float(weight)
        except ValueError:
            name = ""
        if not name:
            raise ConfigError(
                f"--class-weight must be balanced, or a class and its weight such as yes=3; got {word!r}."
            )
    return found


def parse_quantiles(words: list[str] | None) -> tuple[float, ...]:
    """Return the numbers of words such as ``0.05`` or ``0.05,0.5,0.95``."""
    given = [part for word in words or () for part in word.split(",")]
    try:
        return tuple(map(float, given))
    except ValueError:
        raise ConfigError(f"--quantile must be a number such as 0.9, or several; got {','.join(given)!r}.") from None


def load_model(source: str) -> TableModel:
    """Read a model file. If there is none, the error names the file with the nearest name."""
    path = Path(source)
    if not path.exists() and path.parent.is_dir():
        near = sorted(found.name for found in path.parent.glob("*.nae") if found.exists())  # leaves out broken links
        raise FormatError(f"No file is at {source}.{did_you_mean(path.name, near) if near else ''}")
    return load(path)
