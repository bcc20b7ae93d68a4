"""The best epoch so far, and the weights it left."""

import math
from collections.abc import Callable, Mapping

from nae._typing import AnyArray
from nae.training.history import Epoch

__all__ = ["Best", "Snapshot"]

Snapshot = Mapping[str, AnyArray]
"""The weights of a network and all else that it predicts by, by name."""

_TOLERANCE = 0.02  # a model within this of the additivity asked for counts as having reached it


class Best:
    """Keeps the weights of the epoch with the least validation loss.

    If an additivity is asked for (``target``), epochs that fall short of it do not count once there are others. Where
    nothing is judged, the last epoch is the best.
    """

    def __init__(self, *, target: float | None, is_judged: bool, least_gain: float = 0.0) -> None:
        self.target, self.is_judged = target, is_judged
        self.least_gain = least_gain  # by so much a loss must be less than the best one to take its place
        self.value: float | None = None
        self.snapshot: Snapshot | None = None

    def offer(self, epoch: Epoch, snapshot: Callable[[], Snapshot]) -> bool:
        """Return whether the epoch is the best one so far; if it was judged, its weights are kept."""
        is_short = self.target is not None and (epoch.additivity or 0.0) < self.target - _TOLERANCE
        if not self.is_judged or (is_short and self.snapshot is None):
            return True  # nothing to choose by, or nothing to choose from yet
        least = math.inf if self.value is None else self.value - self.least_gain
        if epoch.validation is None or is_short or not epoch.validation < least:
            return False
        self.value, self.snapshot = epoch.validation, snapshot()
        return True
