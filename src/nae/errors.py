"""The errors that the library raises, grouped by who can correct them.

NAEError
├── UserError (ValueError)      the call can be corrected
│   ├── DataError               a table, a column or a target
│   ├── ConfigError             a parameter
│   └── FormatError             a file
├── TrainingError (RuntimeError)    training diverged
└── MissingDependencyError (ImportError)    a package has to be installed
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = [
    "ConfigError",
    "DataError",
    "FormatError",
    "MissingDependencyError",
    "NAEError",
    "NAEWarning",
    "TrainingError",
    "UserError",
    "did_you_mean",
    "listed",
]


class NAEError(Exception):
    """The base class of every error that this library raises on purpose."""


class UserError(NAEError, ValueError):
    """The call can be corrected by the caller."""


class DataError(UserError):
    """A table, a column or a target cannot be used as it is."""


class ConfigError(UserError):
    """A parameter has an invalid value."""


class FormatError(UserError):
    """A file is not a complete model file."""


class TrainingError(NAEError, RuntimeError):
    """Training produced numbers that are not finite."""


class MissingDependencyError(NAEError, ImportError):
    """A required optional package is not installed."""


class NAEWarning(UserWarning):
    """A warning about something that does not stop the work."""


def did_you_mean(name: str, options: Iterable[str], *, is_listed: bool = False) -> str:
    """Return `` Did you mean 'x'?`` for the nearest option. If none is near, return the list unless it was shown."""
    known = [str(option) for option in options]
    near = get_close_matches(str(name), known, n=1)
    if near:
        return f" Did you mean {near[0]!r}?"
    if is_listed:
        return ""
    return f" Known: {listed(known)}."


def listed(names: Sequence[str]) -> str:
    """Return the first few names in quotes, for a sentence."""
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
