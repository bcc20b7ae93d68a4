"""Recourse, measured: the seconds per row, how many ways are found, and how much of their cost is proven."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tables import markdown_table
from nae import TableModel
from nae.decisions import Recourse

__all__ = ["ASKED", "Asked", "recourse_section"]

N_ROWS = 20


@dataclass(frozen=True)
class Asked:
    """What is asked about the rows of a table: by how much to raise the prediction, or None for the other class."""

    raised_by: float | None
    given: Mapping[str, Any]


_GIVEN = ["fnlwgt", "Education", "MaritalStatus", "Relationship", "Race", "Gender", "NativeCountry"]
ASKED = {
    "housing": Asked(0.5, {"fixed": ["Latitude", "Longitude"]}),
    "telco_churn": Asked(None, {"fixed": ["gender", "SeniorCitizen", "Partner", "Dependents", "tenure"]}),
    "income": Asked(None, {"fixed": _GIVEN, "increasing": ["Age", "EducationNum"]}),
}
SETTINGS: Sequence[tuple[str, dict[str, Any]]] = (
    ("1 change", {"k": 1, "n": 1}),
    ("2 changes", {"k": 2, "n": 1}),
    ("3 changes", {"k": 3, "n": 1}),
    ("3 changes, 3 ways", {"k": 3, "n": 3}),
)


def recourse_section(models: Sequence[tuple[Any, TableModel, Any]]) -> str:
    """Return the section of the page, given cases, each with a ``table``, and their models and rows."""
    rows = [
        [case.table, name, *_cells(model, X.iloc[:N_ROWS], ASKED[case.table], setting)]
        for case, model, X in models
        if case.table in ASKED
        for name, setting in SETTINGS
    ]
    header = ["table", "", "found", "proven impossible", "proven, median", "proven, least", "seconds", "most seconds"]
    text = (
        f"{N_ROWS} rows, one at a time. Housing: raise the prediction by 0.5. Other tables: the other class. *Proven* "
        "is the lower bound of the cost of any way, as a share of the cost of the first way, whose values are rounded. "
        "Seconds are those of the processor, per row: their mean, and the most of any row."
    )
    return f"## Recourse\n\n{text}\n\n{markdown_table(header, rows)}"


def _cells(model: TableModel, rows: Any, asked: Asked, setting: Mapping[str, Any]) -> list[str]:
    found, seconds = zip(*(_timed(model, rows.iloc[[at]], asked, setting) for at in range(len(rows))), strict=True)
    proven = np.array([one[0].bound / one[0].cost for one in found if one.ways])
    n_impossible = sum(one.is_impossible for one in found)
    shares = ["", ""] if not len(proven) else [f"{100 * part(proven):.0f} %" for part in (np.median, np.min)]
    return [f"{len(proven)}", f"{n_impossible}", *shares, f"{np.mean(seconds):.2f}", f"{max(seconds):.2f}"]


def _timed(model: TableModel, row: Any, asked: Asked, setting: Mapping[str, Any]) -> tuple[Recourse, float]:
    target: Any = None
    if asked.raised_by is None:
        target = model.classes[int(np.argmin(model.predict_proba(row)[0]))]
    else:
        target = (float(model.predict(row)[0]) + asked.raised_by, None)
    start = time.process_time()
    return model.recourse(row, target=target, **asked.given, **setting), time.process_time() - start
