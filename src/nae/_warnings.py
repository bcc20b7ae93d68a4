"""Warnings that point at the line of the user who called the library."""

import contextlib
import inspect
import os
import warnings
from pathlib import Path

from nae.errors import NAEWarning

__all__ = ["warn"]

_SKIPPED = (f"{Path(__file__).parent}{os.sep}", contextlib.__file__)  # context managers stand between our functions


def warn(message: str, category: type[Warning] = NAEWarning) -> None:
    """Warn at the nearest caller outside this package, however deep inside the package the reason was found."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
