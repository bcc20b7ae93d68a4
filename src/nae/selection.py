"""Choose among several models: the most additive one that predicts about as well as the best."""

import math
from collections.abc import Sequence

__all__ = ["most_additive"]


def most_additive(losses: Sequence[float], errors: Sequence[float], additivities: Sequence[float]) -> int:
    """Return the position of the most additive model whose loss is within one standard error of the smallest.

    ``errors`` are the standard errors of the losses. A model with a loss of NaN was not validated; it is chosen only if
    no model was.
    """
    known = [i for i, loss in enumerate(losses) if not math.isnan(loss)]
    if not known:
        return 0
    best = min(known, key=lambda i: losses[i])
    within = [i for i in known if i == best or losses[i] <= losses[best] + errors[best]]
    return max(within, key=lambda i: (additivities[i], -losses[i]))
