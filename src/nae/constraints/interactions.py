"""Which feature may change the effect of which: masks for the blocks of a gate, one for all members or one for each."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nae._typing import BoolArray

__all__ = ["Allowed"]


@dataclass(frozen=True, eq=False)
class Allowed:
    """Which features may change which, besides groups within which features may interact."""

    pairs: BoolArray  # (F, F), whether the first feature may change the second
    groups: tuple[frozenset[int], ...] | None = None
    """Features interact only with those of a group that they share. If None, with all."""

    @classmethod
    def everything(cls, n_features: int) -> "Allowed":
        """Return what forbids nothing."""
        return cls(np.ones((n_features, n_features), dtype=bool))

    @property
    def n_features(self) -> int:
        return len(self.pairs)

    @property
    def is_free(self) -> bool:
        """Whether every feature may change every other one."""
        is_one_group = self.groups is None or any(len(group) == self.n_features for group in self.groups)
        return is_one_group and bool(self.pairs.all())

    @cached_property
    def _others(self) -> BoolArray:
        """(F, F), which features may change which in at least one member; True for a feature and itself."""
        allowed = self.pairs.copy()
        if self.groups is not None:
            shared = np.zeros_like(allowed)
            for group in self.groups:
                shared[np.ix_(list(group), list(group))] = True
            allowed &= shared
        np.fill_diagonal(allowed, val=True)
        return allowed

    @property
    def isolated(self) -> frozenset[int]:
        """Features that may change no other one."""
        return self._alone(axis=1)

    @property
    def unchanged(self) -> frozenset[int]:
        """Features that no other one may change."""
        return self._alone(axis=0)

    def masks(self, n_members: int) -> BoolArray:
        """Return who may change whom, (n_members, F, F), or (1, F, F) if this is the same for all members.

        Where a feature is in several groups, each member takes another one of them. A single member that took two would
        let features of different groups interact in how they change the one that both groups share.
        """
        own = [[group for group in self.groups or () if i in group] for i in range(self.n_features)]
        if self.groups is None or all(len(groups) < 2 for groups in own):
            return self._others[None]
        masks = np.repeat(self._others[None], n_members, axis=0)
        for target, groups in enumerate(own):
            for member in range(n_members if groups else 0):
                group = groups[(member + target) % len(groups)]
                others = [i for i in range(self.n_features) if i != target and i not in group]
                masks[member, others, target] = False
        return masks

    def _alone(self, *, axis: int) -> frozenset[int]:
        if self.is_free:
            return frozenset()
        others = self._others & ~np.eye(self.n_features, dtype=bool)
        return frozenset(np.flatnonzero(~others.any(axis=axis)).tolist())
