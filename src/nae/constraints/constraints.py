"""What a fit promises, by position of the features, and the same as statements that ``certify`` takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nae._typing import Array
from nae.constraints.interactions import Allowed

__all__ = ["Constraints", "Score"]

_WAYS = {1: "+", -1: "-"}
_BENDS = {1: "convex", -1: "concave"}


@dataclass(frozen=True)
class Score:
    """What constraints need to know of the score that they are about."""

    spread: Array
    """(output,), what the score of training is multiplied by."""
    is_log: bool
    """Whether the link is a logarithm, so that effects are factors."""
    n_classes: int
    """0 for a regression."""
    sign: int = 1
    """-1 if training learns the score of the other class, of two."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Constraints:
    """What is asked for. Features without an entry are free."""

    monotone: Mapping[int, int]
    """1 for features that never lower the score, -1 for those that never raise it."""
    curved: Mapping[int, int]
    """1 for convex curves, -1 for concave ones."""
    max_effect: Mapping[int, float]
    """The most that a feature alone moves the score."""
    allowed: Allowed
    """Which features may change the effect of which others."""
    sorts_outputs: bool = False
    """Whether the outputs are quantiles in order."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is promised."""
        asked = (self.monotone, self.curved, self.max_effect, self.sorts_outputs)
        return not any(asked) and self.allowed.is_free

    def promises(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the promises as a file holds them: keyword arguments of ``certify``."""
        found: dict[str, Any] = {
            "monotone": {names[i]: _WAYS[way] for i, way in self.monotone.items()},
            "curved": {names[i]: _BENDS[bend] for i, bend in self.curved.items()},
            "max_effect": {names[i]: limit for i, limit in self.max_effect.items()},
            "isolated": [names[i] for i in sorted(self.allowed.isolated)],
            "unchanged": [names[i] for i in sorted(self.allowed.unchanged)],
        }
        return {kind: value for kind, value in found.items() if value}
