"""What intervals are based on: out-of-fold residuals of the fit, or rows that were kept apart."""

from dataclasses import dataclass

from nae._words import counted
from nae.errors import UserError
from nae.tables.model import TableModel
from nae.tables.residuals import Residuals

__all__ = ["Basis", "basis_of"]


@dataclass(frozen=True)
class Basis:
    """The rows whose residuals intervals are made of."""

    source: str
    """'out-of-fold': rows that some members held out. 'calibration': rows that the fit has not seen."""
    n_rows: int
    measured: float | None
    """The share of the out-of-fold rows within such intervals, each made without the row's own fold; None if unknown.

    It is known for coverages of 80, 90 and 95 %.
    """
    is_whole: bool = False
    """Whether the targets were whole numbers, where the loss is that of counts; then so are the ends."""

    @property
    def is_guaranteed(self) -> bool:
        """Whether the coverage holds for any model and any distribution: on average over new rows like these."""
        return self.source == "calibration"

    def __str__(self) -> str:
        if self.is_guaranteed:
            return f"guaranteed by {counted(self.n_rows, 'row')} kept apart"
        share = "" if self.measured is None else f", measured {self.measured:.3f}"
        return f"from {counted(self.n_rows, 'out-of-fold row')}{share}"


def basis_of(model: TableModel, coverage: float) -> tuple[Basis, Residuals]:
    """Return what a model's intervals are based on, and its residuals."""
    entry = model.training.intervals
    if model.residuals is None or entry is None:
        raise UserError(
            "Intervals need residuals of rows that members held out, or rows that the fit has not seen; "
            f"{_reason(model)} Pass calibrate_on=(X, y)."
        )
    measured = entry["coverage"].get(f"{coverage:g}")
    return Basis(entry["source"], entry["n_rows"], measured, entry.get("is_whole", False)), model.residuals


def _reason(model: TableModel) -> str:
    if model.training.edits:
        return "the model was edited after its fit."
    return "the model has none."
