"""Some of the members of a model, as a model."""

from collections.abc import Sequence
from dataclasses import replace

from nae._typing import IntArray
from nae.tables.gates import MEMBER_AXES, GateTables
from nae.tables.model import TableModel

__all__ = ["some_members"]


def some_members(model: TableModel, members: Sequence[int] | IntArray) -> TableModel:
    """Return the model of some members, with the intercept of all. Clamps, which hold for the mean, are left out."""
    gate = {name: array.take(members, axis=MEMBER_AXES[name]) for name, array in model.gate.arrays.items()}
    return replace(
        model,
        experts=model.experts.take(members, axis=-1),
        gate=GateTables(model.gate.kind, **gate),
        clamps=None,
        residuals=None,
        evidence=None,
        kernel=None,
    )
