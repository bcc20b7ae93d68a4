"""The model as every export starts from it, and what several exports share."""

from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.schema import Category
from nae.errors import UserError
from nae.tables.lowered import Lowered, lower
from nae.tables.model import TableModel

__all__ = ["lowered", "model_of", "require_unicode", "scaled_spans"]


def lowered(model: Any) -> Lowered:
    """Return the steps of a model, or of the model of a fitted estimator."""
    return lower(model_of(model))


def model_of(model: Any) -> TableModel:
    """Return the tables of a model or of a fitted estimator."""
    found = getattr(model, "model_", model)
    if not isinstance(found, TableModel):
        raise UserError(f"An export needs a TableModel or a fitted estimator; got {type(model).__name__}.")
    return found


def require_unicode(model: Lowered, what: str) -> None:
    """Refuse names and levels that are not valid Unicode."""
    levels = (text for one in model.schema.features if isinstance(one, Category) for text in (*one.levels, *one.rare))
    for text in (*model.schema.names, *model.outputs, *model.classes, *levels):
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise UserError(
                f"{what} holds valid Unicode only; {text!r} has half a surrogate pair. Rename it before fit."
            )


def scaled_spans(knots: Array) -> tuple[Array, Array]:
    """Return the scale of every knot, and the span to the next knot on that scale.

    The fraction of a value at or above a knot is ``(value * scale - knot * scale) / span``. The scale is 1, or 0.5 if
    the distance to the next knot is larger than the largest float. The span of the last knot is 1.
    """
    with np.errstate(over="ignore"):
        scale = np.where(np.isinf(np.diff(knots, append=knots[-1])), 0.5, 1.0)
    span = np.append(knots[1:] * scale[:-1] - knots[:-1] * scale[:-1], 1.0)
    return scale, span
