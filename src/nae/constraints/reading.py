"""Read constraints as users write them: by name or position, in scikit-learn's forms and a few more."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae.constraints.constraints import Constraints
from nae.constraints.interactions import Allowed
from nae.constraints.levels import is_order
from nae.encoding import Category, Schema
from nae.errors import ConfigError, did_you_mean

__all__ = ["Asked", "read_constraints"]

_WAYS: dict[Any, int] = {1: 1, -1: -1, 0: 0, "increasing": 1, "decreasing": -1, "+": 1, "-": -1}
_DIRECTED = ("changes", "changed_by")


@dataclass(frozen=True, eq=False, kw_only=True)
class Asked:
    """The parameters that ask for constraints, as they are given."""

    monotonic_cst: Any = None
    interaction_cst: Any = None
    max_effect: Any = None
    convex: Any = None
    concave: Any = None

    @property
    def is_empty(self) -> bool:
        return all(value is None for value in vars(self).values())


def read_constraints(asked: Asked, schema: Schema, *, is_log: bool = False, n_classes: int = 0) -> Constraints:
    """Return the constraints of a table. What contradicts itself, or cannot be promised, is an error."""
    names = _Names(schema)
    monotone = _read_monotone(asked.monotonic_cst, names)
    curved = _read_curved(asked, names)
    caps = _read_caps(asked.max_effect, names, is_log=is_log)
    allowed = _read_interactions(asked.interaction_cst, names)
    if monotone or curved:
        _check_one_score(
            "monotonic_cst" if monotone else "convex" if asked.convex is not None else "concave", n_classes
        )
    for at in (at for at in caps if at in curved):
        raise ConfigError(
            f"A feature cannot have both a curve that bends and a cap; {names.shown(at)} is in max_effect and in "
            f"{'convex' if curved[at] > 0 else 'concave'}. Leave out one of them."
        )
    return Constraints(monotone=monotone, curved=curved, max_effect=caps, allowed=allowed)


def _check_one_score(parameter: str, n_classes: int) -> None:
    if n_classes > 2:
        raise ConfigError(
            f"{parameter} is a promise about one score; y has {n_classes} classes, each with a score of its own. "
            "Fit one class against the others: NAEClassifier on y == label."
        )


@dataclass(frozen=True, eq=False)
class _Names:
    """The names of the features, to be looked up."""

    schema: Schema

    def __len__(self) -> int:
        return len(self.schema)

    def shown(self, at: int) -> str:
        return repr(self.schema.names[at])

    def find(self, given: Any, parameter: str) -> int:
        """Return the position of a feature that is given by name or position."""
        if isinstance(given, str):
            if given not in self.schema.names:
                raise ConfigError(
                    f"{parameter} must name features of the table; {given!r} is none."
                    f"{did_you_mean(given, self.schema.names)}"
                )
            return self.schema.names.index(given)
        if not isinstance(given, int | np.integer) or isinstance(given, bool):
            raise ConfigError(f"{parameter} must hold names or positions of features; got {given!r}.")
        if not 0 <= given < len(self):
            raise ConfigError(f"{parameter} must hold positions in [0, {len(self) - 1}]; got {given}.")
        return int(given)

    def find_all(self, given: Any, parameter: str) -> list[int]:
        if isinstance(given, str):
            given = [given]
        if not isinstance(given, Iterable):
            raise ConfigError(f"{parameter} must be a list of names; got {given!r}.")
        return [self.find(one, parameter) for one in given]

    def by_feature(self, given: Any, parameter: str, example: object) -> dict[int, Any]:
        """Return a value per feature, from a dict by name or an array with one entry per feature."""
        if isinstance(given, Mapping):
            return {self.find(name, parameter): value for name, value in given.items()}
        is_list = isinstance(given, Iterable) and not isinstance(given, str)
        values = list(given) if is_list else []
        if not is_list or len(values) != len(self):
            got = f"{len(values)} of them" if is_list else repr(given)
            raise ConfigError(
                f"{parameter} must be a dict by name, such as {{{self.schema.names[0]!r}: {example!r}}}, or have one "
                f"entry per feature ({len(self)}); got {got}."
            )
        return dict(enumerate(values))

    def check_listed(self, at: int) -> None:
        feature = self.schema.features[at]
        if not isinstance(feature, Category):
            raise ConfigError(
                f"A list of levels is the order of a category; {feature.name!r} is a {feature.kind}. "
                "Pass 'increasing' or 'decreasing'."
            )

    def check_ordered(self, at: int, parameter: str) -> None:
        feature = self.schema.features[at]
        is_ordered = isinstance(feature, Category) and feature.is_ordered and parameter == "monotonic_cst"
        if isinstance(feature, Category) and not is_ordered:
            hint = "List the levels from the lowest to the highest" if parameter == "monotonic_cst" else "Use numbers"
            raise ConfigError(
                f"{parameter} needs features with an order; {feature.name!r} is a category of {len(feature.levels)} "
                f"levels without one. {hint}, or leave the feature out."
            )


def _read_monotone(given: Any, names: _Names) -> dict[int, int]:
    if given is None:
        return {}
    found = {}
    for at, way in names.by_feature(given, "monotonic_cst", "increasing").items():
        if is_order(way):
            names.check_listed(at)
        elif not isinstance(way, str | int | np.number) or isinstance(way, bool) or way not in _WAYS:
            raise ConfigError(
                "monotonic_cst must hold 1, -1 or 0, 'increasing' or 'decreasing', or a list of levels; "
                f"got {way!r} for {names.shown(at)}."
            )
        if sign := 1 if is_order(way) else _WAYS[way]:
            names.check_ordered(at, "monotonic_cst")
            found[at] = sign
    return found


def _read_curved(asked: Asked, names: _Names) -> dict[int, int]:
    found: dict[int, int] = {}
    for parameter, bend in (("convex", 1), ("concave", -1)):
        given = getattr(asked, parameter)
        for at in names.find_all(() if given is None else given, parameter):
            names.check_ordered(at, parameter)
            if found.get(at, bend) != bend:
                raise ConfigError(f"A curve is convex or concave; {names.shown(at)} is in both. Leave out one of them.")
            found[at] = bend
    return found


def _read_caps(given: Any, names: _Names, *, is_log: bool) -> dict[int, float]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"max_effect must be a dict by name, such as {{{names.schema.names[0]!r}: 0.05}}; got {given!r}."
        )
    return {
        at: _read_cap(cap, names.shown(at), is_log=is_log)
        for at, cap in names.by_feature(given, "max_effect", 0.05).items()
    }


def _read_cap(cap: Any, name: str, *, is_log: bool) -> float:
    """Return a cap in units of the score, from a number, or from a factor such as 'x1.05' or '5%'."""
    limit: Any = _read_factor(cap) if isinstance(cap, str) else cap
    if isinstance(cap, str) and not is_log:
        raise ConfigError(
            f"max_effect must be in units of the score unless the link is a logarithm; got {cap!r} for {name}. "
            "Pass a number."
        )
    if not isinstance(limit, int | float | np.number) or isinstance(limit, bool) or not 0 < float(limit) < math.inf:
        also = ", or a factor such as 'x1.05' or '5%'" if is_log else ""
        raise ConfigError(f"max_effect must hold positive numbers{also}; got {cap!r} for {name}.")
    return float(limit)


def _read_factor(text: str) -> float | None:
    """Return the logarithm of a factor, or None if the text holds none."""
    stripped = text.strip().lower()
    try:
        if stripped.endswith("%"):
            return math.log1p(float(stripped[:-1]) / 100)
        return math.log(float(stripped.removeprefix("x")))
    except ValueError:
        return None


def _read_interactions(given: Any, names: _Names) -> Allowed:
    allowed = Allowed.everything(len(names))
    if given is None:
        return allowed
    if isinstance(given, Mapping):
        return _read_directed(given, names)
    if isinstance(given, str):
        if given not in _FORMS:
            raise ConfigError(
                f"interaction_cst must be 'pairwise', 'no_interactions', a list of groups, or a dict by name; "
                f"got {given!r}.{did_you_mean(given, _FORMS)}"
            )
        return Allowed(allowed.pairs, _FORMS[given](len(names)))
    if not isinstance(given, Iterable):
        raise ConfigError(f"interaction_cst must hold groups of features; got {given!r}.")
    groups = [frozenset(names.find_all(group, "interaction_cst")) for group in given]
    rest = frozenset(range(len(names))) - frozenset().union(*groups)
    return Allowed(allowed.pairs, tuple([*groups, rest] if rest else groups))


def _read_directed(given: Mapping[Any, Any], names: _Names) -> Allowed:
    """Return who may change whom, from the features that one ``changes`` and those that it is ``changed_by``."""
    pairs = np.ones((len(names), len(names)), dtype=bool)
    for name, sides in given.items():
        at = names.find(name, "interaction_cst")
        if not isinstance(sides, Mapping) or not sides or not set(sides) <= set(_DIRECTED):
            raise ConfigError(
                f"interaction_cst must say by 'changes' or 'changed_by' which features interact, such as "
                f"{{{names.shown(at)}: {{'changes': []}}}}; got {sides!r}."
            )
        for side, others in sides.items():
            rest = np.ones(len(names), dtype=bool)
            rest[names.find_all(others, "interaction_cst")] = False
            own = pairs if side == "changes" else pairs.T
            own[at, rest] = False
    return Allowed(pairs)


def _pairs(n_features: int) -> tuple[frozenset[int], ...]:
    return tuple(frozenset((i, j)) for i in range(n_features) for j in range(i)) or (frozenset((0,)),)


def _singles(n_features: int) -> tuple[frozenset[int], ...]:
    return tuple(frozenset((i,)) for i in range(n_features))


_FORMS: dict[str, Callable[[int], tuple[frozenset[int], ...]]] = {"pairwise": _pairs, "no_interactions": _singles}
