"""Print how good a model is, and read the target column of a file."""

import pyarrow as pa
from rich.table import Table

from nae._typing import AnyArray
from nae.cli.columns import find_column
from nae.cli.console import digits, make_table
from nae.encoding import read_table
from nae.encoding.columns import category_keys, numbers
from nae.errors import ConfigError
from nae.quality import Measure, Quality, class_positions
from nae.tables import TableModel

__all__ = ["find_target", "quality_table", "read_target"]


def read_target(column: pa.ChunkedArray, name: str, *, classes: tuple[str, ...] | None) -> AnyArray:
    """Return the target as numbers, or as class names if ``classes`` is not None. Missing values are NaN or None."""
    array = read_table(pa.table([column], names=[name])).arrays[0]
    if classes is None:
        return numbers(array, name)
    keys = category_keys(array)
    if classes:
        class_positions(keys, classes, what=f"Column {name!r}", first_row=1)
    return keys


def find_target(model: TableModel, table: pa.Table, given: str | None) -> str:
    """Return the column of the target: the given one, or the one that a model remembers."""
    wanted = given or model.training.target
    if wanted is None:
        raise ConfigError("The target's column must be known; the model does not name it. Give --target.")
    return find_column(wanted, table, role="target column")


def quality_table(title: str, quality: Quality) -> Table:
    """Return measures as a table to print. If there are resamples, it has a column with the range of 95 % of them."""
    has_intervals = any(one.interval for one in quality)
    table = make_table(
        title, "", "model", *(["95 % range"] if has_intervals else []), f"always {quality.baseline}", "better by"
    )
    for one in quality:
        between = [_between(one)] if has_intervals else []
        table.add_row(one.name, digits(one.value), *between, digits(one.baseline), _gain(one))
    return table


def _between(one: Measure) -> str:
    return "" if one.interval is None else f"{digits(one.interval[0], 3)} to {digits(one.interval[1], 3)}"


def _gain(one: Measure) -> str:
    if digits(one.value) == digits(one.baseline):
        return "the same"
    return f"{100 * one.gain:+.0f} %" if one.has_share else digits(one.gain, 3, signed=True)
