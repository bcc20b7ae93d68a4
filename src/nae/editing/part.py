"""The tables of one feature: how edits read and replace them. An edit never changes an array in place.

Shapes: T slots, K experts, O outputs, F features, M members; n slots of one feature.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nae._typing import Array
from nae.encoding.schema import Feature, Number
from nae.errors import ConfigError
from nae.tables.clamps import Clamps
from nae.tables.model import TableModel

__all__ = ["Part", "slot_weight"]


@dataclass(frozen=True, eq=False)
class Part:
    """A feature of a model, and how much of the training rows lies at each slot of the model."""

    model: TableModel
    at: int
    weight: Array  # (T,), positive

    @property
    def feature(self) -> Feature:
        """The feature."""
        return self.model.schema.features[self.at]

    @property
    def slots(self) -> slice:
        """The slots of the feature: knots or levels, missing, unseen."""
        return self.model.schema.slots(self.at)

    @property
    def knots(self) -> slice:
        """The slots of a number in their order. A feature without an order is an error."""
        if not isinstance(self.feature, Number) or self.feature.is_empty:
            raise ConfigError(
                f"An edit of a curve needs a number; {self.feature.name!r} is "
                f"{'empty' if isinstance(self.feature, Number) else 'a category'}. Use cap, drop or set_level for it."
            )
        return slice(self.slots.start, self.slots.start + self.feature.n_values)

    def experts(self, slots: slice) -> Array:
        """Return the experts of slots in double precision, (n, K, O, M)."""
        return self.model.experts[slots].astype(np.float64)

    def terms(self, slots: slice) -> Array:
        """Return the gate terms of slots in double precision, (n, width, M)."""
        return self.model.gate.terms[slots].astype(np.float64)

    def with_experts(self, slots: slice, values: Array) -> "Part":
        """Return the feature in a model with other experts at some of the slots."""
        return replace(self, model=replace(self.model, experts=_replaced(self.model.experts, slots, values)))

    def with_terms(self, slots: slice, values: Array) -> "Part":
        """Return the feature in a model with other gate terms at some of the slots."""
        gate = replace(self.model.gate, terms=_replaced(self.model.gate.terms, slots, values))
        return replace(self, model=replace(self.model, gate=gate))

    def with_clamps(self, slots: slice, change: Callable[[Array], Array]) -> "Part":
        """Return the feature in a model whose clamps at some slots, (n, O), are changed; the lower end stays below."""
        clamps = self.model.clamps
        if clamps is None:
            return self
        ends = np.sort([change(end[slots].astype(np.float64)) for end in (clamps.lower, clamps.upper)], axis=0)
        lower, upper = (
            _replaced(whole, slots, end) for whole, end in zip((clamps.lower, clamps.upper), ends, strict=True)
        )
        return replace(self, model=replace(self.model, clamps=Clamps(lower, upper)))


def slot_weight(model: TableModel, weight: Array | None = None) -> Array:
    """Return how much of the training rows lies at each slot, (T,); ``weight`` if the model does not know.

    Where neither says so, all slots are alike. Slots without rows have a little weight, so that means are defined.
    """
    if model.statistics is not None:
        weight = model.statistics.weight.astype(np.float64)
    if weight is None:
        return np.ones(model.schema.n_slots)
    return np.asarray(np.maximum(weight, 1e-6 * max(float(weight.max()), 1e-300)))


def _replaced(whole: Array, slots: slice, values: Array) -> Array:
    found = whole.copy()
    found[slots] = values
    return found
