"""What a table of bins costs in accuracy: by binning, by leaving out the context, and by rounding."""

from collections.abc import Sequence

import numpy as np

from nae._typing import Array
from nae.decisions.scorecards.card import BinCard
from nae.decisions.scorecards.groups import Curve, Group
from nae.decisions.scorecards.parts import CardFeature, CardLoss, Measured
from nae.decisions.scorecards.scales import Scale
from nae.encoding.columns import Columns
from nae.explanation.reference import has_context, require_statistics
from nae.tables.model import TableModel

__all__ = ["loss_of", "losses_of", "measured_on"]


def losses_of(curve: Curve, groups: Sequence[Group], scale: Scale, shift: float) -> dict[str, float]:
    """Return the losses of one feature, by their names in :class:`CardFeature`."""
    squares = sum(float(curve.share[group.slots] @ (curve.effect[group.slots] - group.effect) ** 2) for group in groups)
    effects = np.array([group.effect for group in groups])
    shown = scale.effects(scale.shown(effects - shift)) + shift
    ends = np.array([[group.lower, group.upper] for group in groups])
    return {
        "binning": float(np.sqrt(squares)),
        "context": float(np.sqrt(_context(curve))),
        "rounding": float(np.abs(shown - effects).max()),
        "largest": float(np.abs(ends - effects[:, None]).max()),
    }


def loss_of(model: TableModel, output: int, features: Sequence[CardFeature], base: float) -> CardLoss:
    """Return the losses of the whole table; ``base`` is what rounding changes at the base."""
    rounding = base + sum(one.rounding for one in features)
    context = require_statistics(model).additive_variance[output] if has_context(model) else 0.0
    return CardLoss(
        binning=sum(one.binning for one in features),
        context=float(np.sqrt(context)),
        rounding=rounding,
        largest=rounding + sum(one.largest for one in features),
        measured=None,
    )


def measured_on(card: BinCard, model: TableModel, output: int, columns: Columns) -> Measured:
    """Return how far the rounded table is from the model on some rows. An offset is left out of both."""
    score: Array = model.decision_function(columns).reshape(columns.n_rows, -1)[:, output]
    off = card.as_score(card.score(columns)) - score
    return Measured(len(off), float(np.sqrt(np.mean(off**2))), float(np.abs(off).max()), float(off.mean()))


def _context(curve: Curve) -> float:
    """Return the variance of what other features change of the contribution."""
    if not has_context(curve.model):
        return 0.0
    return float(require_statistics(curve.model).residual[curve.at, curve.output])
