"""What must hold of the entries of a training summary that the library reads; other entries may hold anything."""

from collections.abc import Callable
from typing import Any

from nae.errors import FormatError

__all__ = ["check_summary"]

Rule = tuple[str, Callable[[Any], bool]]  # in words, and as a test


def check_summary(training: dict[str, Any]) -> None:
    """Check the entries that measuring, reports, cards and the command line read; each may be absent."""
    for name, (words, holds) in _ENTRIES.items():
        if name in training and not holds(training[name]):
            raise FormatError(f"{name!r} of the training summary must be {words}; got {str(training[name])[:40]!r}.")


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= 1e300)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _lists(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def _names(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(holds, value.values()))


def _or_none(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or holds(value)


def _is_pair(value: Any) -> bool:
    return _lists(_is_number)(value) and len(value) == 2


def _is_baseline(value: Any) -> bool:
    return (
        isinstance(value, dict) and _lists(_is_number)(value.get("values")) and _or_none(_is_number)(value.get("level"))
    )


def _is_split(value: Any) -> bool:
    if not isinstance(value, dict) or not _is_text(value.get("rows_sha256")):
        return False
    size: Any = value.get("test_size")
    return _is_number(size) and 0 <= size < 1 and _is_count(value.get("seed"))


_NUMBER: Rule = ("a number", _is_number)
_NUMBERS: Rule = ("a list of numbers", _lists(_is_number))
_TEXT: Rule = ("a text", _is_text)
_COUNT: Rule = ("a whole number from 0 up", _is_count)
_QUALITY: Rule = ("numbers by name", _names(_is_number))
_ENTRIES: dict[str, Rule] = {
    "loss": _TEXT,
    "quantile": _NUMBER,
    "tweedie_power": _NUMBER,
    "huber_threshold": _NUMBERS,
    "intercept_shift": _NUMBERS,
    "baseline": ("'values', a list of numbers, and 'level', a number or null", _is_baseline),
    "offset": ("a list of texts, or null", _or_none(_lists(_is_text))),
    "weight": ("a text, or null", _or_none(_is_text)),
    "target": ("a text, or null", _or_none(_is_text)),
    "n_rows": _COUNT,
    "n_validation_rows": _COUNT,
    "n_test_rows": _COUNT,
    "validation_loss": ("a number, or null", _or_none(_is_number)),
    "quality": _QUALITY,
    "baseline_quality": _QUALITY,
    "quality_intervals": ("pairs of numbers by name", _names(_is_pair)),
    "split": ("'rows_sha256', 'test_size' below 1 and 'seed'", _is_split),
}
