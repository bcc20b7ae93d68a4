"""Words that say which features are unknown or within limits: ``--unknown income --within age=30:40``."""

from collections.abc import Sequence
from typing import Annotated, Any

import pyarrow as pa
import typer

from nae.cli.columns import align, match_name
from nae.encoding.schema import Category, Feature, Number
from nae.errors import ConfigError, did_you_mean
from nae.tables import TableModel

__all__ = ["WithinOption", "aligned_without", "limits_of", "match_names"]

WithinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--within",
        help="Limits of a feature: age=30:40, age=30: (an open end), or region=N,S (levels; missing is one, too). "
        "Repeatable.",
    ),
]


def match_names(words: Sequence[str] | None, model: TableModel) -> list[str]:
    """Return the features that words name; blanks around a name do not matter."""
    return [match_name(word, model.feature_names) or word for word in words or ()]


def limits_of(words: Sequence[str] | None, model: TableModel) -> dict[str, Any]:
    """Return the limits by feature."""
    found: dict[str, Any] = {}
    for word in words or ():
        name, _, limit = word.partition("=")
        name = match_name(name, model.feature_names) or name
        if not limit:
            raise ConfigError(f"--within must be a feature and its limits, such as age=30:40; got {word!r}.")
        if name not in model.feature_names:
            raise ConfigError(f"No feature is called {name!r}.{did_you_mean(name, model.feature_names)}")
        if name in found:
            raise ConfigError(f"--within takes every feature once; got {name!r} twice.")
        found[name] = _limit(model.schema.features[model.feature_names.index(name)], limit)
    return found


def aligned_without(table: pa.Table, model: TableModel, names: Sequence[str]) -> pa.Table:
    """Return the columns that a model needs. Those of the given features are missing, and need not be in the table."""
    nothing = pa.nulls(table.num_rows, pa.float64())
    for name in names:
        found = match_name(name, table.column_names)
        at = table.num_columns if found is None else table.column_names.index(found)
        table = table.append_column(name, nothing) if found is None else table.set_column(at, name, nothing)
    return align(table, model.schema)


def _limit(feature: Feature, text: str) -> Any:
    return _interval(feature, text) if isinstance(feature, Number) else _levels(feature, text)


def _interval(feature: Number, text: str) -> tuple[float | None, float | None]:
    low, colon, high = text.partition(":")
    try:
        ends = [None if not end.strip() else float(end) for end in ((low, high) if colon else (low, low))]
    except ValueError:
        raise ConfigError(f"The limits of {feature.name!r} must be numbers, such as 30:40; got {text!r}.") from None
    return ends[0], ends[1]


def _levels(feature: Category, text: str) -> list[str | None]:
    known = {*feature.levels, *feature.rare}
    words = [text] if text in known else text.split(",")
    return [None if word == "missing" and word not in known else word for word in words]
