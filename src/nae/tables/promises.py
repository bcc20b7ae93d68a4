"""Promises: the statements that a fit was made to keep, as a file holds them and ``certify`` takes them."""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["is_promises", "mirrored_promises"]

_OPPOSITE: Mapping[Any, Any] = {
    "+": "-",
    "-": "+",
    "increasing": "decreasing",
    "decreasing": "increasing",
    1: -1,
    -1: 1,
    "convex": "concave",
    "concave": "convex",
}


def is_promises(value: Any) -> bool:
    """Return whether a JSON value holds promises. Kinds that this version does not know may hold anything."""
    return isinstance(value, dict) and all(holds(value[kind]) for kind, holds in _KINDS.items() if kind in value)


def mirrored_promises(promises: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model promises about its score, as promises about the negative score."""
    turned = {
        kind: {name: _OPPOSITE[way] for name, way in promises[kind].items()}
        for kind in ("monotone", "curved")
        if kind in promises
    }
    return {**promises, **turned}


def _is_way(*ways: str | int) -> Callable[[Any], bool]:
    return lambda value: type(value) in (str, int) and value in ways


def _is_limit(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1e300


def _by_name(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(holds, value.values()))


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "monotone": _by_name(_is_way("+", "-", "increasing", "decreasing", 1, -1)),
    "max_effect": _by_name(_is_limit),
    "isolated": _is_names,
    "unchanged": _is_names,
    "curved": _by_name(_is_way("convex", "concave")),
    "ordered": lambda value: type(value) is bool,
    "output": lambda value: isinstance(value, str),
}
