"""What a model keeps of its residuals on rows that it did not learn from: aggregates, never rows."""

from dataclasses import dataclass, fields

from nae._typing import Array

__all__ = ["Residuals"]


@dataclass(frozen=True, eq=False)
class Residuals:
    """The distribution of residuals, from which prediction intervals and sets are computed.

    For classes, the residual is one minus the probability of the true class, and there is one output.
    """

    quantiles: Array  # (point, output), at the levels 1 / (P + 1), ..., P / (P + 1); ascending

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}
