"""The columns of intervals and sets that ``nae predict`` writes."""

from typing import Any

import pyarrow as pa

from nae._typing import Array
from nae.cli.columns import column_of, find_column
from nae.tables import TableModel
from nae.uncertainty import known_by

__all__ = ["doubts"]


def doubts(
    model: TableModel,
    rows: pa.Table,
    table: pa.Table,
    *,
    interval: float | None,
    classes: float | None,
    offset: Array | None,
) -> dict[str, Any]:
    """Return the ends of intervals, or sets and their sizes, for the coverage that is asked for."""
    by = known_by(model)
    if by is not None and by not in rows.column_names:
        rows = rows.append_column(by, column_of(table, find_column(by, table)))
    found: dict[str, Any] = {}
    if interval is not None:
        ends = model.predict_interval(rows, interval, offset=offset)
        found |= {name: pa.array(values) for name, values in _named(ends.columns, model.n_outputs).items()}
    if classes is not None:
        sets = model.predict_set(rows, classes, offset=offset)
        found |= {"set": pa.array([", ".join(own) for own in sets.sets]), "set size": pa.array(sets.size)}
    return found


def _named(columns: dict[str, Array], n_outputs: int) -> dict[str, Array]:
    """Return the ends; those of several outputs are told apart from the bounds of a feature's contribution."""
    ends = {name: values for name, values in columns.items() if not name.startswith("prediction")}
    return ends if n_outputs == 1 else {name.replace(" of ", " end of ", 1): own for name, own in ends.items()}
