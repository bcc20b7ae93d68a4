"""What would have to change in rows of the page: sentences, computed before the page is written."""

from collections.abc import Mapping
from typing import Any

from nae._typing import IntArray
from nae.report.rows import ReportRows
from nae.tables.model import TableModel

__all__ = ["find_recourse"]

_MOST_ROWS = 20
_BUDGET = 5_000  # boxes per row; fewer than where a single row is asked about


def find_recourse(model: TableModel, rows: ReportRows, index: IntArray, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON values about the first rows of the page that do not reach the target.

    ``asked`` are the arguments of :meth:`nae.tables.answers.reaches.Reaches.recourse`.
    """
    found, n_reached, target = [], 0, ""
    for place, at in enumerate(index.tolist()):
        offset = None if rows.offset is None else rows.offset[[at]]
        row = rows.columns.take(index[[place]])
        one = model.recourse(row, **({"budget": _BUDGET} | dict(asked)), offset=offset)
        target = one.target
        n_reached += one.is_reached
        if not one.is_reached:
            sentences = [one.sentence(way) for way in one.ways]
            found.append({"row": place, "now": one.now_text, "ways": sentences, "proof": one.proof})
        if len(found) == _MOST_ROWS:
            break
    return {"target": target, "rows": found, "nReached": n_reached}
