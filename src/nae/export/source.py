"""What every export starts from."""

from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.schema import Category
from nae.errors import UserError
from nae.tables.lowered import Lowered, lower
from nae.tables.model import TableModel

__all__ = ["lowered", "model_of", "require_unicode", "scaled_spans"]


def lowered(model: Any) -> Lowered:
    """Return a model or a fitted estimator as steps."""
    return lower(model_of(model))


def model_of(model: Any) -> TableModel:
    """Return the tables of a model or of a fitted estimator."""
    found = getattr(model, "model_", model)
    if not isinstance(found, TableModel):
        raise UserError(f"A model or a fitted estimator can be exported; got {type(model).__name__}.")
    return found


def require_unicode(model: Lowered, what: str) -> None:
    """Refuse texts that are no Unicode, where an export may hold nothing else."""
    levels = (text for one in model.schema.features if isinstance(one, Category) for text in (*one.levels, *one.rare))
    for text in (*model.schema.names, *model.outputs, *model.classes, *levels):
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise UserError(f"{what} holds Unicode text alone; {text!r} has half a character. Rename it before fit.")


def scaled_spans(knots: Array) -> tuple[Array, Array]:
    """Return two numbers per knot: its scale, and how far it is to the next knot on that scale.

    The fraction of a value at or above a knot is ``(value * scale - knot * scale) / span``. The scale is one, or a half
    where the next knot is farther away than the largest float. After the last knot the span is one.
    """
    with np.errstate(over="ignore"):
        scale = np.where(np.isinf(np.diff(knots, append=knots[-1])), 0.5, 1.0)
    span = np.append(knots[1:] * scale[:-1] - knots[:-1] * scale[:-1], 1.0)
    return scale, span
