"""By how much the residuals of all members together are smaller than those of the few that held a row out.

A new row is predicted by the mean of all members; a held-out row by one of them, or by a few. Let ``s`` be the variance
that members share, noise included, and ``v`` the variance of one member around their mean. The residual of the mean of
n members then has the variance ``s + v / n``. Only the ratio ``v / (s + v)`` is needed. It is measured on members that
have learned from a row: learning from it shrinks the residual of every member and the distances between members by the
same factor (for a linear smoother exactly), so that the ratio stays the same.

Held-out rows also chose the epoch of their members, so that their residuals are a little too small. Therefore only a
part of the ratio is believed: the one with which intervals held the right share of validation rows of six tables.
"""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, BoolArray, IntArray

__all__ = ["MemberScores", "averaging_factor"]

_BELIEVED = 0.85


@dataclass(frozen=True, eq=False)
class MemberScores:
    """The scores that every member gives to some of the rows."""

    rows: IntArray  # (b,), positions among the rows
    score: Array  # (b, O, M), offset included
    has_learned: BoolArray  # (b, M), whether the member has learned from the row
    n_held: float
    """The mean number of members that held a row out."""


def averaging_factor(residuals: Array, weight: Array, members: MemberScores) -> Array:
    """Return the factor from the residuals of held-out rows to those of all members together, (output,).

    ``residuals`` (b, O, M) are those of the members, divided by the size that is usual for the row.
    """
    is_seen = members.has_learned[:, None]
    count = is_seen.sum(axis=-1)
    if not (count > 1).all():
        return np.ones(residuals.shape[1])
    mean = (residuals * is_seen).sum(axis=-1) / count
    apart = ((residuals - mean[..., None]) ** 2 * is_seen).sum(axis=-1) / (count - 1)
    total = (residuals**2 * is_seen).sum(axis=-1) / count
    whole = weight @ total
    ratio = np.divide(weight @ apart, whole, out=np.zeros_like(whole), where=whole > 0).clip(0.0, 0.9) * _BELIEVED
    of_all, of_held = (1 - ratio + ratio / n for n in (residuals.shape[-1], members.n_held))
    return np.asarray(np.sqrt(of_all / of_held))
