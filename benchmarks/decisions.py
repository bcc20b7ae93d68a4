"""Decisions, measured: seconds of reasons and of recourse, and how often the order of reasons survives.

Models are fitted to half of a table with their defaults; the other half has the rows that are decided about. Every part
is a function that returns a section of the page ``benchmarks/results/decisions.md``.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets.files import folder_of_tables, read_table
from benchmarks.machine import describe
from benchmarks.recourse import recourse_section
from benchmarks.tables import markdown_table
from nae import NAEClassifier, NAERegressor, TableModel
from nae.decisions import Reasons

__all__ = ["CASES", "PARTS", "Case", "add_command", "page_of", "reasons_section", "sufficient_section"]

RESULT = Path(__file__).parent / "results" / "decisions.md"
N_ROWS = 1_000
N_DECIDED = 20  # rows of sufficient reasons


@dataclass(frozen=True)
class Case:
    """A table, and what is asked about its rows."""

    table: str
    asked: Mapping[str, Any]
    tolerance: Mapping[str, float]
    decision: Mapping[str, Any]


CASES = (
    Case("housing", {}, {"MedInc": 0.1, "AveRooms": 0.2}, {"threshold": 2.5}),
    Case("telco_churn", {"toward": 1}, {"tenure": 1, "MonthlyCharges": 2}, {}),
    Case("income", {"toward": 1}, {"Age": 1, "HoursPerWeek": 2}, {}),
)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser("decisions", help="the seconds and margins of reasons", description=__doc__)
    parser.add_argument("--part", choices=sorted(PARTS), help="measure one part; the page keeps the others")
    parser.set_defaults(run=lambda given: _run(given.part))


def _run(part: str | None) -> None:
    models = [(case, *_fitted(case.table)) for case in CASES]
    sections = [one(models) for name, one in PARTS.items() if part in (None, name)]
    old = RESULT.read_text() if part is not None and RESULT.exists() else ""
    text = page_of(sections, old)
    RESULT.write_text(text)
    print(text)


def page_of(sections: Sequence[str], old: str = "") -> str:
    """Return the page: its sections, where those that are new replace old ones with the same title."""
    kept = [f"## {one.strip()}" for one in old.rpartition("\n\n")[0].split("\n## ")[1:]]
    found = {one.partition("\n")[0]: one for one in [*kept, *sections]}
    foot = f"{describe()}, one thread; `python -m benchmarks decisions`.\n"
    return "\n\n".join(["# Decisions", *found.values(), foot])


def _fitted(name: str) -> tuple[TableModel, Any]:
    table = read_table(name, folder_of_tables())
    order = np.random.default_rng(0).permutation(len(table.y))
    kind = NAEClassifier if len(np.unique(table.y)) == 2 else NAERegressor
    half = len(order) // 2
    model = kind(random_state=0).fit(table.X.iloc[order[:half]], table.y[order[:half]]).model_
    return model, table.X.iloc[order[half:]]


Measured = list[tuple[Case, TableModel, Any]]


def reasons_section(models: Measured) -> str:
    """Return the seconds of reasons for 1,000 rows, and the share of reasons that keep their place."""
    rows = [
        [f"{case.table}, {name}", *_reasons_cells(model, X, case, changes)]
        for case, model, X in models
        for name, changes in _forms(case)
    ]
    header = [
        "table",
        "features",
        "seconds",
        "keep their place in all members",
        "within the tolerance",
        "in any context",
    ]
    text = f"""## Reasons

Four reasons for each of {N_ROWS:,} rows. The shares are those of all reasons that keep their place. Within the
tolerance this is proven; in brackets, no value that was tried took the place away."""
    return f"{text}\n\n{markdown_table(header, rows)}"


def _forms(case: Case) -> list[tuple[str, dict[str, Any]]]:
    noise = ", ".join(f"{name} ± {amount:g}" for name, amount in case.tolerance.items())
    unit = {"unit": "response"}
    return [("mean", {}), ("prediction", unit), ("best", {"reference": "best"}), (noise, {"tolerance": case.tolerance})]


def _reasons_cells(model: TableModel, X: Any, case: Case, changes: Mapping[str, Any]) -> list[str]:
    rows = X.iloc[:N_ROWS]
    seconds = _best(lambda: model.reasons(rows, **case.asked, **changes))
    found = model.reasons(rows, **case.asked, **changes)
    shares = [_share(found, test) for test in range(3)]
    is_tried = np.isfinite(found.found)
    if is_tried.any():
        shares[1] += f" ({100 * (found.found[is_tried] > 0).mean():.0f} %)"
    return [f"{model.n_features}", f"{seconds:.3f}", *shares]


def _share(found: Reasons, test: int) -> str:
    margins = found.places[..., test][found.features >= 0]
    return "" if np.isnan(margins).any() else f"{100 * (margins > 0).mean():.0f} %"


def sufficient_section(models: Measured) -> str:
    """Return the seconds of sufficient reasons, how many features they have, and how often they are proven smallest."""
    rows = [[case.table, *_sufficient_cells(model, X, case)] for case, model, X in models]
    header = ["table", "features", "decide alone, mean", "least", "most", "proven smallest", "seconds per row"]
    return f"## Sufficient reasons\n\n{N_DECIDED} rows.\n\n{markdown_table(header, rows)}"


def _sufficient_cells(model: TableModel, X: Any, case: Case) -> list[str]:
    start = time.perf_counter()
    found = model.sufficient_reasons(X.iloc[:N_DECIDED], **case.decision).reasons
    seconds = (time.perf_counter() - start) / len(found)
    sizes = [len(one.features) for one in found]
    smallest = 100 * np.mean([one.is_smallest for one in found])
    ends = [f"{np.mean(sizes):.1f}", f"{min(sizes)}", f"{max(sizes)}"]
    return [f"{model.n_features}", *ends, f"{smallest:.0f} %", f"{seconds:.1f}"]


def _best(call: Callable[[], object]) -> float:
    """Return the shortest of three times, because other processes may use the machine."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


PARTS: Mapping[str, Callable[[Measured], str]] = {
    "reasons": reasons_section,
    "sufficient": sufficient_section,
    "recourse": recourse_section,
}
