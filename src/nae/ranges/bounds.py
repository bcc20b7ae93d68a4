"""Upper bounds of the score within boxes: one node per domain. A lower bound is that of the negative score.

Within a box every logit lies in an interval, and so does every weight. A feature without a domain contributes at most
the largest mean of its experts that such weights allow. For a feature with a domain there are two bounds: the same with
the largest of every expert within its node; and, at each vertex, the mean under fixed shares plus what other weights
can change. The smaller one counts. Where the weights are known, the second one is exact.

Between two vertices experts and clamps are linear, so a mean of experts under fixed shares is largest at one of them.
"""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, IntArray
from nae.ranges.domains import Domain
from nae.ranges.mixing import anchor, largest, limits
from nae.ranges.peaks import has, homes, peak
from nae.ranges.problem import Mixed, Own, Problem

__all__ = ["bound"]

_CHUNK = 2**16  # logits that are computed at once
_NEAR = 0.6  # of all weight; where less is certain, fixed shares say nothing


@dataclass(frozen=True, eq=False)
class _Mixtures:
    """What weights allow in boxes."""

    known: Array  # (n, output), the sum over the features without a domain
    own: Array  # (n, output, domain)
    share: Array  # (n, domain, K * M), fixed weights
    moved: Array  # (n, domain, M), the part of the whole that other weights give to other experts; 2 for no shares


def bound(problem: Problem, rows: IntArray, nodes: IntArray) -> Array:
    """Return upper bounds of the score in boxes: the row of each, and its nodes (n, domain)."""
    found = _all_mixtures(problem, rows, nodes)
    total = problem.start + found.known.sum(axis=1)
    for o, output in enumerate(problem.outputs):
        for d, (line, own) in enumerate(zip(problem.lines, output.own, strict=True)):
            total += _own_bound(line.domain, own, nodes[:, d], found, (o, d))
    return np.asarray(total)


def _all_mixtures(problem: Problem, rows: IntArray, nodes: IntArray) -> _Mixtures:
    """Return the mixtures of boxes, computed in parts that fit into a cache."""
    step = max(1, _CHUNK // int(np.prod(problem.gate.shape)))
    starts = range(0, max(len(rows), 1), step)
    parts = [_mixtures(problem, rows[at : at + step], nodes[at : at + step]) for at in starts]
    return _Mixtures(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))


def _mixtures(problem: Problem, rows: IntArray, nodes: IntArray) -> _Mixtures:
    weights = limits(problem.model.routing, *problem.logits(rows, nodes))  # (K, n, F * M) each
    known, own = [], []
    for output in problem.outputs:
        mean = _means(problem, output.known.take(rows), weights)
        known.append(output.clamp.take(rows).clip(mean).sum(axis=1))
        experts = [one.most.take(node) for one, node in zip(output.own, nodes.T, strict=True)]
        own.append([_means(problem, mixed, weights)[:, 0] for mixed in experts])
    anchors = [_anchor(weights, problem, feature) for feature in problem.varying]
    share, moved = (np.stack(parts, axis=1) for parts in zip(*anchors, strict=True))
    return _Mixtures(np.stack(known, axis=1), np.array(own).transpose(2, 0, 1), share, moved)


def _anchor(weights: tuple[Array, Array], problem: Problem, feature: int) -> tuple[Array, Array]:
    """Return the shares (n, K * M) of a feature's experts, and what other weights change, (n, M); 2 for no shares."""
    n_members, n = problem.model.n_members, weights[0].shape[1]
    least, most = (part[:, :, feature * n_members : (feature + 1) * n_members] for part in weights)
    some = np.flatnonzero((least.sum(axis=0) / most.sum(axis=0)).mean(axis=-1) > _NEAR)
    share, moved = np.zeros((n, len(least), n_members)), np.full((n, n_members), 2.0)
    found, moved[some] = anchor(least[:, some], most[:, some])
    share[some] = found.swapaxes(0, 1)
    return share.reshape(n, -1), moved


def _means(problem: Problem, mixed: Mixed, weights: tuple[Array, Array]) -> Array:
    """Return the mean over the members of the largest means of experts, (n, feature)."""
    found = largest(problem.model.routing, mixed.read(weights[0]), mixed.read(weights[1]), mixed.experts)
    n_members = problem.model.n_members
    return np.asarray(found.reshape(len(found), found.shape[1] // n_members, n_members).mean(axis=-1))


def _own_bound(domain: Domain, own: Own, nodes: IntArray, found: _Mixtures, at: tuple[int, int]) -> Array:
    """Return the largest contribution of a feature with a domain, (n,)."""
    best = own.highest.take(nodes).clip(found.own[:, *at])
    share, moved = found.share[:, at[1]], found.moved[:, at[1]]
    slack = (moved * own.room[nodes]).mean(axis=-1)
    helps = (moved <= 1.0).all(axis=-1) & (slack < own.span[nodes])
    for start, stop, some in homes(domain, nodes, np.flatnonzero(helps)):
        mean = share[some] @ own.curve[:, start:stop] + slack[some, None]
        lower, upper = own.clamp.lower[start:stop], own.clamp.upper[start:stop]
        top = peak(np.maximum(mean, lower), upper, has(domain, nodes[some], start, stop))
        best[some] = np.minimum(best[some], top)
    return best
