"""What every export starts from."""

from typing import Any

from nae.errors import UserError
from nae.tables.model import TableModel

__all__ = ["model_of"]


def model_of(model: Any) -> TableModel:
    """Return the tables of a model or of a fitted estimator."""
    found = getattr(model, "model_", model)
    if not isinstance(found, TableModel):
        raise UserError(f"A model or a fitted estimator can be exported; got {type(model).__name__}.")
    return found
