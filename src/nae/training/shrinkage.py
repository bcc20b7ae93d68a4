"""How much of what was learned beyond the start is kept: as much as helps on held-out rows, so none on pure noise."""

import math
from collections.abc import Callable

from nae.network import ADDITIONS
from nae.training.best import Snapshot
from nae.training.engine import Engine

__all__ = ["keep_share"]

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def keep_share(
    engine: Engine, validate: Callable[[], float | None], *, least_gain: float = 0.0
) -> tuple[float, float | None]:
    """Keep the share of what was learned that has the least validation loss; return this share and its loss.

    A larger share is kept only if that lowers the loss by ``least_gain``. If nothing is validated, all is kept.
    """
    learned = engine.snapshot()
    losses = []
    for share in _SHARES:
        engine.restore(_with_share(learned, share))
        losses.append(validate())
    known = [(loss, share) for loss, share in zip(losses, _SHARES, strict=True) if loss is not None]
    least = min(known, default=(math.inf, 1.0))[0]
    loss, share = next((one for one in known if one[0] <= least + least_gain), (None, 1.0))
    engine.restore(_with_share(learned, share))
    return share, loss


def _with_share(learned: Snapshot, share: float) -> Snapshot:
    return {name: array * array.dtype.type(share if name in ADDITIONS else 1) for name, array in learned.items()}
