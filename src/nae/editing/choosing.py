"""A direction: of two projections that keep it, the one that changes the rows less."""

from collections.abc import Iterator

import numpy as np

from nae._typing import Array
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
    before = _values(part, rows)
    found = [(_size(_values(one, rows).sum(axis=1) - before.sum(axis=1)), one) for one in _candidates(part, sign, rows)]
    return min(found, key=lambda pair: pair[0])[1]


def _candidates(part: Part, sign: int, rows: Cells) -> Iterator[Part]:
    """Yield the feature that gates nothing, and that which gates those features that ordering changes less."""
    alone = monotone_alone(part, sign=sign)
    yield alone
    if not can_interact(part.model):
        return
    before, cut, ordered = (_values(one, rows) for one in (part, alone, monotone_together(part, sign=sign)))
    features = range(part.model.n_features)
    better = [i for i in features if _size((ordered - before)[:, i]) < _size((cut - before)[:, i])]
    together = monotone_together(part, sign=sign, targets=better)
    if better and certify(together.model, monotone={part.feature.name: sign}).all_proven:
        yield together


def _values(part: Part, cells: Cells) -> Array:
    """Return the contributions of rows, (row, feature, output)."""
    model = part.model
    return model.contributions(cells).values.reshape(len(cells), model.n_features, model.n_outputs)


def _size(moved: Array) -> float:
    """Return the mean square of changes (row, output), but for their means, which the intercept takes."""
    return float(np.var(moved, axis=0).sum())
