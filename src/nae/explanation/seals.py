"""Seals: what a model can never do. Its promises, proven again, and what its tables prove although nobody asked."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nae.certificates import Tables, tables_of
from nae.encoding.schema import Category, Feature
from nae.errors import UserError
from nae.explanation.certificates import PROVEN, Certificate, Certificates
from nae.explanation.certify import certify_promises
from nae.explanation.serial import Serial
from nae.tables.model import TableModel

__all__ = ["Limit", "Seal", "Seals", "find_seals"]


@dataclass(frozen=True)
class Seal:
    """What is proven of some features, although it was not promised."""

    kind: str  # increasing, decreasing, isolated or unchanged
    features: tuple[str, ...]


@dataclass(frozen=True)
class Limit:
    """The most that a feature alone moves a score, for any input."""

    feature: str
    output: str
    effect: float
    promised: float | None  # the cap that the fit was made to keep, if it is proven


@dataclass(frozen=True, eq=False)
class Seals(Serial):
    """What a model can never do."""

    type_name: ClassVar[str] = "seals"

    promises: tuple[Certificate, ...]
    found: tuple[Seal, ...]
    limits: tuple[Limit, ...]
    note: str  # why the promises could not be checked; empty if they were


def find_seals(model: TableModel, features: Iterable[int]) -> Seals:
    """Return the verdict on every promise, and what is proven of some features, by position.

    Limits, and seals that were not promised, are those of each output by itself; with more than two classes, whose
    scores count only beside each other, only seals about the gate are found.
    """
    promises, note = _promises(model)
    chosen = list(features)
    names = model.outputs if len(model.classes) <= 2 else ()
    tables = [tables_of(model, unit) for unit in np.eye(model.n_outputs)]
    caps = {one.feature: one.limit for one in promises.certificates if one.kind == "max effect"}
    for one in promises.certificates:
        if one.kind == "max effect" and one.verdict != PROVEN:
            caps.pop(one.feature, None)
    limits = [
        Limit(model.feature_names[i], name, one.effect(i), caps.get(model.feature_names[i]))
        for name, one in zip(names, tables, strict=False)
        for i in chosen
    ]
    return Seals(promises.certificates, tuple(_found(model, tables, chosen, promises)), tuple(limits), note)


def _promises(model: TableModel) -> tuple[Certificates, str]:
    if not model.training.constraints:
        return Certificates(()), ""
    try:
        return certify_promises(model), ""
    except UserError as error:
        return Certificates(()), str(error)


def _found(model: TableModel, tables: list[Tables], features: list[int], promises: Certificates) -> Iterator[Seal]:
    """Yield what holds for every output and was not promised. A feature without any effect holds no seal."""
    known = {(one.kind, one.feature) for one in promises.certificates if one.verdict == PROVEN}
    has_effect = [i for i in features if any(one.effect(i) > one.tolerance for one in tables)]
    numbers = [i for i in has_effect if _has_order(model.schema.features[i]) and len(model.classes) <= 2]
    kinds = {
        "increasing": [i for i in numbers if all(one.drop(i, 1) <= one.tolerance for one in tables)],
        "decreasing": [i for i in numbers if all(one.drop(i, -1) <= one.tolerance for one in tables)],
        "isolated": [i for i in has_effect if all(one.changes(i) <= one.tolerance for one in tables)],
        "unchanged": [i for i in has_effect if all(one.changed(i) <= one.tolerance for one in tables)],
    }
    for kind, positions in kinds.items():
        statement = "monotone" if kind in ("increasing", "decreasing") else kind
        names = [model.feature_names[i] for i in positions]
        new = tuple(name for name in names if (statement, name) not in known)
        if new and (model.n_features > 1 or statement == "monotone"):
            yield Seal(kind, new)


def _has_order(feature: Feature) -> bool:
    return not isinstance(feature, Category) or feature.is_ordered
