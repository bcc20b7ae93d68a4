"""What a model still promises after an edit: every statement is certified anew, and what is not proven is dropped."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nae.errors import UserError
from nae.explanation.certificates import PROVEN
from nae.explanation.certify import certify
from nae.tables.model import TableModel

__all__ = ["Promises", "joined", "settled"]

_BY_NAME = ("monotone", "max_effect", "curved")
_LISTED = ("isolated", "unchanged")


@dataclass(frozen=True)
class Promises:
    """The statements that a model keeps, as keyword arguments of ``certify``, and sentences about each of them."""

    kept: dict[str, Any]
    proven: tuple[str, ...]
    dropped: tuple[str, ...]


def joined(promised: Mapping[str, Any], gained: Mapping[str, Any]) -> dict[str, Any]:
    """Return both promises. Of two caps the smaller one counts, of two directions the new one."""
    found = {**promised}
    for kind, new in gained.items():
        old = promised.get(kind)
        if kind in _LISTED:
            found[kind] = list(dict.fromkeys([*(old or []), *new]))
        else:
            found[kind] = {**(old or {}), **new}
    for name, limit in (promised.get("max_effect") or {}).items():
        found["max_effect"][name] = min(limit, found["max_effect"][name])
    return found


def settled(model: TableModel, promised: Mapping[str, Any]) -> Promises:
    """Return what a model keeps of its promises."""
    kept: dict[str, Any] = {}
    proven: list[str] = []
    dropped: list[str] = []
    for kind, name, way in _statements(promised):
        found = _verdict(model, kind, name, way, promised.get("output"))
        if isinstance(found, str):
            dropped.append(found)
            continue
        proven += found
        _keep(kept, kind, name, way)
    if kept and "output" in promised:
        kept["output"] = promised["output"]
    return Promises(kept, tuple(proven), tuple(dropped))


def _statements(promised: Mapping[str, Any]) -> Iterator[tuple[str, str | None, Any]]:
    """Yield the kind, the feature and the value of every promise."""
    for kind, value in promised.items():
        if kind in _BY_NAME:
            yield from ((kind, name, way) for name, way in value.items())
        elif kind in _LISTED:
            yield from ((kind, name, None) for name in value)
        elif kind != "output" and value:
            yield kind, None, value


def _verdict(model: TableModel, kind: str, name: str | None, way: Any, output: str | None) -> list[str] | str:
    """Return a sentence per proof; or one that says why the promise is dropped."""
    about = kind if name is None else f"{kind} of {name!r}"
    one = {kind: way if name is None else [name] if kind in _LISTED else {name: way}}
    alone = {**one, "output": output} if output is not None else one
    try:
        found = certify(replace(model, training=replace(model.training, constraints=alone)))
    except UserError as error:
        return f"The promise {about} is dropped. {error}"
    failed = [one for one in found.certificates if one.verdict != PROVEN]
    return (
        f"The promise {about} is dropped. {failed[0].sentence}" if failed else [one.claim for one in found.certificates]
    )


def _keep(kept: dict[str, Any], kind: str, name: str | None, way: Any) -> None:
    if name is None:
        kept[kind] = way
    elif kind in _LISTED:
        kept.setdefault(kind, []).append(name)
    else:
        kept.setdefault(kind, {})[name] = way
