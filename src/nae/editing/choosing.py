"""A direction: of two projections that keep it, the one that changes the rows less."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nae.editing.directions import can_interact, monotone_alone, monotone_together
from nae.editing.part import Part
from nae.editing.rows import sampled_cells
from nae.encoding.cells import Cells
from nae.errors import ConfigError
from nae.explanation.certify import certify

__all__ = ["monotone"]


def monotone(part: Part, *, sign: int, keep_interactions: bool | None, cells: Cells | None) -> Part:
    """Return the feature in a model whose score never falls with it (``sign`` 1), or never rises (-1).

    ``cells`` are the rows; if None, rows are drawn slot by slot from the weights of the training rows.
    """
    if len(part.model.classes) > 2:
        raise ConfigError(
            f"A direction is a promise about one score; the model has {len(part.model.classes)} classes, each with a "
            "score of its own. Fit one class against the others."
        )
    if keep_interactions and not can_interact(part.model):
        raise ConfigError(
            "keep_interactions=True needs a gate whose logits are sums over the features; "
            f"this {part.model.gate.kind} gate has none, or too many of them. Leave keep_interactions out."
        )
    if keep_interactions is not None:
        return (monotone_together if keep_interactions else monotone_alone)(part, sign=sign)
    rows = sampled_cells(part.model, part.weight) if cells is None else cells
    found = [(_change(part, one, rows), number, one) for number, one in enumerate(_candidates(part, sign))]
    return min(found)[2]


def _candidates(part: Part, sign: int) -> Iterator[Part]:
    yield monotone_alone(part, sign=sign)
    if can_interact(part.model):
        together = monotone_together(part, sign=sign)
        if certify(together.model, monotone={part.feature.name: sign}).all_proven:
            yield together


def _change(before: Part, after: Part, cells: Cells) -> float:
    """Return the mean square of the change of the scores, but for their means, which the intercept takes."""
    one, other = (
        replace(part.model, kernel=None).decision_function(cells).reshape(len(cells), -1) for part in (before, after)
    )
    return float(np.var(other - one, axis=0).sum())
