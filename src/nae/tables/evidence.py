"""Evidence: what the training rows say of every effect, and how surely. Aggregates per slot, never rows."""

from dataclasses import dataclass, fields
from statistics import NormalDist

import numpy as np

from nae._typing import Array, IntArray
from nae.errors import ConfigError

__all__ = ["Evidence", "check_coverage"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The additive part of the truth, as a smooth fit of the training rows sees it, with standard errors.

    The band of an effect reaches as far to both sides of ``centre`` as its error says, and always holds the effect that
    the model shows. :mod:`nae.uncertainty.effects` says how it is made.
    """

    centre: Array  # (slot, output), the effect that the rows suggest, zero on average as contributions are
    error: Array  # (slot, output), its standard error; 0 where no row says anything
    chance: Array  # (feature, output), of rows like these, or clearer ones, if the feature had nothing to say

    @property
    def has_bands(self) -> bool:
        """Whether any effect has a standard error; with more than two classes, none has."""
        return bool(self.error.any())

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def band(self, mean: Array, coverage: float) -> tuple[Array, Array]:
        """Return the ends of the band around the shown effects ``mean``, (slot, output) each; NaN without an error."""
        reach = NormalDist().inv_cdf((1 + check_coverage(coverage)) / 2) * self.error
        nothing = np.where(self.error > 0, 0.0, np.nan)
        lower, upper = np.minimum(mean, self.centre - reach), np.maximum(mean, self.centre + reach)
        return lower + nothing, upper + nothing

    def take(self, slots: slice | IntArray) -> "Evidence":
        """Return the evidence at some slots, with the chances of all features."""
        return Evidence(self.centre[slots], self.error[slots], self.chance)

    def mirrored(self) -> "Evidence":
        """Return the evidence about the negative score."""
        return Evidence(0 - self.centre, self.error, self.chance)


def check_coverage(coverage: float) -> float:
    """Return a coverage, which must lie between 0 and 1."""
    if not 0 < coverage < 1:
        raise ConfigError(f"coverage must be in (0, 1); got {coverage!r}.")
    return coverage
