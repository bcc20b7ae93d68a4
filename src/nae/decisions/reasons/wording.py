"""The words of reasons: what features are called, which may be named, and the sentence that states a reason.

They are read from a file such as::

    sentence = "{feature} is {value}: {difference} towards {outcome}."
    remarks = false

    [outcomes]
    leaves = "leaving us"

    [features.tenure]
    name = "the time as a customer"
    unit = "months"

    [features.gender]
    named = false
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from nae.errors import ConfigError, did_you_mean

__all__ = ["FeatureWording", "Wording", "read_wording"]

_WORDS = ("feature", "value", "difference", "own", "context", "outcome", "reference", "rank")
_FEATURE_KEYS = {"name": str, "unit": str, "named": bool, "sentence": str, "values": dict}
_KEYS = {"sentence": str, "remarks": bool, "missing": str, "outcomes": dict, "features": dict}


@dataclass(frozen=True)
class Words:
    """What a value of a feature, or an outcome, is called."""

    of: str
    words: str


@dataclass(frozen=True)
class FeatureWording:
    """The words of one feature."""

    feature: str
    name: str
    unit: str = ""
    named: bool = True  # whether a customer may be told the feature
    sentence: str = ""
    values: tuple[Words, ...] = ()

    def value(self, shown: str) -> str:
        """Return a value with its own words, or with the unit."""
        return next((one.words for one in self.values if one.of == shown), f"{shown} {self.unit}".rstrip())


@dataclass(frozen=True)
class Wording:
    """The words of all reasons."""

    sentence: str = ""  # empty for the default
    remarks: bool = True  # whether a sentence says if the place of a reason can be relied on
    missing: str = "missing"
    outcomes: tuple[Words, ...] = ()
    features: tuple[FeatureWording, ...] = ()

    def of(self, feature: str) -> FeatureWording:
        """Return the words of a feature: its name, unless others were given."""
        return next((one for one in self.features if one.feature == feature), FeatureWording(feature, feature))

    @property
    def unnamed(self) -> tuple[str, ...]:
        """The features that a customer may not be told."""
        return tuple(one.feature for one in self.features if not one.named)

    def outcome(self, name: str) -> str:
        """Return what an outcome is called."""
        return next((one.words for one in self.outcomes if one.of == name), name)


def read_wording(given: Any, names: tuple[str, ...]) -> Wording:
    """Return the words in a TOML file, or in a dict of its content."""
    if given is None:
        return Wording()
    content = given if isinstance(given, Mapping) else _read_file(given)
    _check_keys(content, _KEYS, "The wording of reasons")
    features = content.get("features", {})
    unknown = next((name for name in features if name not in names), None)
    if unknown is not None:
        raise ConfigError(
            f"The wording of reasons names a feature {unknown!r}, which the model does not have."
            f"{did_you_mean(unknown, names)}"
        )
    plain = {key: content[key] for key in ("sentence", "remarks", "missing") if key in content}
    _check_sentence(content.get("sentence", ""))
    return Wording(
        outcomes=_pairs(content.get("outcomes", {})),
        features=tuple(_feature(name, words) for name, words in features.items()),
        **plain,
    )


def _read_file(path: Any) -> Mapping[str, Any]:
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(f"The wording of reasons must be a TOML file or a dict; got {type(path).__name__}.")
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The wording of reasons must be a TOML file; {os.fspath(path)!r}: {error}.") from error


def _feature(name: str, words: Any) -> FeatureWording:
    what = f"The wording of {name!r}"
    if not isinstance(words, Mapping):
        raise ConfigError(f"{what} must be a table, [features.{name}]; got {words!r}.")
    _check_keys(words, _FEATURE_KEYS, what)
    _check_sentence(words.get("sentence", ""))
    given = {key: value for key, value in words.items() if key != "values"}
    return FeatureWording(name, **{"name": name, **given, "values": _pairs(words.get("values", {}))})


def _pairs(words: Mapping[str, Any]) -> tuple[Words, ...]:
    return tuple(Words(str(key), str(value)) for key, value in words.items())


def _check_keys(content: Mapping[str, Any], known: Mapping[str, type], what: str) -> None:
    for key, value in content.items():
        if key not in known:
            raise ConfigError(f"{what} has no entry {key!r}.{did_you_mean(key, known)}")
        if not isinstance(value, Mapping if known[key] is dict else known[key]):
            raise ConfigError(f"{what}: {key} must be a {_TYPES[known[key]]}; got {value!r}.")


def _check_sentence(sentence: str) -> None:
    """Check that a sentence has known words in braces and nothing else that formatting would carry out."""
    try:
        parts = list(Formatter().parse(sentence))
    except ValueError as error:
        raise ConfigError(f"The sentence of a reason must have pairs of braces; {sentence!r}: {error}.") from error
    for _, word, form, conversion in parts:
        if word is not None and (word not in _WORDS or form or conversion):
            raise ConfigError(f"The sentence of a reason can have {{{'}, {'.join(_WORDS)}}}; got {{{word}}}.")


_TYPES = {str: "text", bool: "truth value (true or false)", dict: "table"}
