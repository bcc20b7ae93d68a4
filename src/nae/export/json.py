"""A model as JSON, for readers without safetensors: the header of a model file, the steps, and the arrays as lists.

``docs/format.md`` explains the header and the arrays, ``docs/export.md`` the steps.
"""

import json
import os
from typing import Any

from nae._files import write_whole
from nae.export.source import model_of
from nae.tables.archive import describe
from nae.tables.listing import list_steps
from nae.tables.lowered import lower

__all__ = ["to_json", "write_json"]


def to_json(model: Any) -> dict[str, Any]:
    """Return a model, or the model of a fitted estimator, as JSON values."""
    found = model_of(model)
    header, arrays = describe(found)
    values = {name: array.tolist() for name, array in arrays.items()}
    return header | {"steps": list_steps(lower(found)), "arrays": values}


def write_json(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the result of :func:`to_json` to a file."""
    write_whole(path, json.dumps(to_json(model), allow_nan=False))
