"""By how much the residuals of all members together are smaller than those of the few that held a row out.

A new row is predicted by the mean of all members; a held-out row by one of them, or by a few. Let ``s`` be the variance
that members share, noise included, and ``v`` the variance of one member around their mean. The residual of the mean of
n members then has the variance ``s + v / n``. Only the ratio ``v / (s + v)`` is needed. It is measured on members that
have learned from a row: learning from it shrinks the residual of every member and the distances between members by the
same factor (for a linear smoother exactly), so that the ratio stays the same.

Classes have no such variance. Members are averaged on the scale of the score, where the log-odds against the true one
of several classes bend upwards: those of the mean are never above the mean of the members', and the gap is about the
same on rows that were learned from. With two classes they are straight, and there is no gap.

Held-out rows also chose the epoch of their members, so that their residuals are a little too small. Therefore only a
part of the ratio is believed: the one with which intervals held the right share of validation rows of six tables.
"""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, BoolArray, IntArray

__all__ = ["MemberScores", "averaging_factor", "averaging_shift", "odds_against"]

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


def averaging_shift(truth: IntArray, weight: Array, members: MemberScores) -> float:
    """Return by how much the log-odds against the true class fall if all members are averaged, not the few that held.

    ``truth`` (b,) are the positions of the true classes. The shift is 0 for two classes, whose score is one number.
    """
    if len(members.rows) == 0 or members.score.shape[1] == 1 or not (members.has_learned.sum(axis=1) > 1).all():
        return 0.0
    seen = members.has_learned / members.has_learned.sum(axis=1, keepdims=True)
    each = np.stack([odds_against(one, truth) for one in np.moveaxis(members.score, -1, 0)], axis=1)
    gap = odds_against((members.score * seen[:, None]).sum(axis=-1), truth) - (each * seen).sum(axis=1)
    n_members, n_seen = seen.shape[1], float(members.has_learned.sum(axis=1).mean())
    share = (1 / members.n_held - 1 / n_members) / (1 - 1 / n_seen)
    return float(share * (weight @ gap) / weight.sum())


def odds_against(score: Array, truth: IntArray) -> Array:
    """Return the log-odds against the true class, (row,), given scores (row, output) and its position."""
    if score.shape[1] == 1:
        return np.where(truth == 1, -score[:, 0], score[:, 0])
    rows = np.arange(len(score))
    others = score.copy()
    others[rows, truth] = -np.inf
    most = others.max(axis=1)
    return np.asarray(most + np.log(np.exp(others - most[:, None]).sum(axis=1)) - score[rows, truth])
