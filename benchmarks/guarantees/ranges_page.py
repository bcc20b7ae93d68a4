"""The section on ranges of predictions with unknown features."""

from pathlib import Path

from benchmarks.guarantees.ranges import BUDGETS, DEFAULT, N_SEARCHED, Measured
from benchmarks.guarantees.record import Record
from benchmarks.tables import markdown_table

__all__ = ["render_ranges"]

_HOW = (
    "`predict_range` on Housing, with a default model and test rows. A width is the mean over the rows of the highest "
    "minus the lowest score of the proven range, in units of the score, by the number of boxes. *Reached* is the "
    "largest minus the smallest score among random completions and a search, a mean over {searched} rows. Processor "
    "seconds are those of all rows with {default} boxes, the default. Completions outside of their range would be a "
    "mistake of the proof."
)


def render_ranges(folder: Path) -> str:
    """Return the section; empty if there are no results."""
    results = Record(folder / "ranges.json").read()
    if not results:
        return ""
    header = ["unknown", "reached", *(f"boxes: {budget}" for budget in BUDGETS), "rows", "seconds", "outside"]
    found = [Measured.from_record(one) for one in results.values()]
    versions = sorted({f"nae {one.version}" for one in found})
    how = _HOW.format(searched=N_SEARCHED, default=DEFAULT)
    table = markdown_table(header, [_row(one) for one in sorted(found, key=lambda one: len(one.unknown))])
    return "\n\n".join(["## Ranges with unknown features", how, table, ", ".join(versions) + "."])


def _row(one: Measured) -> list[str]:
    widths = [f"{one.widths[budget]:.2f}" for budget in BUDGETS]
    outside = str(one.n_outside)
    return [", ".join(one.unknown), f"{one.reached:.2f}", *widths, f"{one.n_rows:,}", f"{one.seconds:.2f}", outside]
