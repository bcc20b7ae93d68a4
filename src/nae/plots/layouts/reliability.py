"""The layout of a reliability curve: predicted against actual shares, with intervals."""

from dataclasses import dataclass

from nae._typing import Array, BoolArray
from nae.quality import Reliability

__all__ = ["ReliabilityLayout", "lay_out_reliability"]


@dataclass(frozen=True, eq=False)
class ReliabilityLayout:
    """Points with intervals beside the diagonal, and how the rows are spread."""

    predicted: Array
    actual: Array
    lower: Array
    upper: Array
    is_off: BoolArray  # whether the interval leaves out the prediction
    highest: float  # the end of both axes
    x_label: str
    y_label: str
    note: str


def lay_out_reliability(found: Reliability) -> ReliabilityLayout:
    """Return the points of a curve, and axes that hold all intervals."""
    named = f"{found.label!r}" if found.label else "the chosen class"
    error = f"error {found.error:.2g}, by chance {found.error_by_chance:.2g}"
    slope = f"slope {found.slope:.2f}"
    return ReliabilityLayout(
        predicted=found.predicted,
        actual=found.actual,
        lower=found.lower,
        upper=found.upper,
        is_off=(found.predicted < found.lower) | (found.predicted > found.upper),
        highest=float(min(1.0, 1.08 * max(found.upper.max(), found.predicted.max()))),
        x_label=f"predicted probability of {named}",
        y_label="share of the rows",
        note=f"{found.n_rows:,} rows · {error} · {slope}",
    )
