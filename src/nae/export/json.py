"""A model as JSON: the header of a model file, with the arrays as nested lists. For readers without safetensors."""

import json
import os
from typing import Any

from nae._files import write_whole
from nae.export.source import model_of
from nae.tables.archive import describe

__all__ = ["to_json", "write_json"]


def to_json(model: Any) -> dict[str, Any]:
    """Return a model (or a fitted estimator) as JSON values: ``docs/format.md`` says what they mean."""
    header, arrays = describe(model_of(model))
    return header | {"arrays": {name: array.tolist() for name, array in arrays.items()}}


def write_json(model: Any, path: str | os.PathLike[str]) -> None:
    """Write :func:`to_json` to a file."""
    write_whole(path, json.dumps(to_json(model), allow_nan=False))
