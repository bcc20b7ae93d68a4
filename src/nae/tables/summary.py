"""TrainingSummary: what a model remembers of how it was trained, and what must hold of it in a file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

from nae.errors import FormatError
from nae.tables.promises import is_promises

__all__ = [
    "AdditivityEntry",
    "BaselineEntry",
    "CalibrationEntry",
    "IntervalsEntry",
    "LevelsEntry",
    "SplitEntry",
    "TrainingSummary",
]


class AdditivityEntry(TypedDict):
    """The additivity that was asked for, and the one that was reached."""

    asked: float
    measured: float


class BaselineEntry(TypedDict):
    """The rule that knows only the target of the training rows: a score per output, or a share per class."""

    values: list[float]
    level: NotRequired[float | list[float] | None]
    """The quantile that the rule predicts, or one per output; None where it predicts the mean."""


class CalibrationEntry(TypedDict):
    """What the score was multiplied by after training, so that probabilities are true."""

    slope: float
    gain: float
    """By how much a slope lowers the log loss of rows that members held out; negative where it raises the loss."""
    standard_error: float


class SplitEntry(TypedDict):
    """How ``nae fit`` split a table, so that its test rows are found again."""

    test_size: float
    seed: int
    rows_sha256: str


class LevelsEntry(TypedDict):
    """The levels of a column whose residuals are known apart."""

    column: str
    levels: list[str]
    n_rows: list[int]
    n_points: list[int]
    """The number of quantiles of every level."""


class IntervalsEntry(TypedDict):
    """The rows that residuals were measured on, and the share of them that lay within intervals."""

    source: Literal["out-of-fold", "calibration"]
    n_rows: int
    coverage: Mapping[str, float]
    """By the coverage that was asked for."""
    is_whole: NotRequired[bool]
    """Whether all targets were whole numbers, where the loss is that of counts."""
    by: NotRequired[LevelsEntry]


@dataclass(frozen=True)
class TrainingSummary:
    """What a model remembers of its training. An entry is None where the file does not have it.

    Files hold the entries in the order of these fields, under the same names.
    """

    intercept_shift: tuple[float, ...] | None = None
    """How far the intercept was moved to match the totals, per output."""
    additivity: AdditivityEntry | None = None
    estimator: str | None = None
    """The name of the estimator's class."""
    n_epochs: int | None = None
    best_epoch: int | None = None
    stopped: str | None = None
    """Why training ended, in words."""
    validation_loss: float | None = None
    table_error: float | None = None
    """By how much the tables differ from the network they were read from, at most."""
    device: str | None = None
    engine: str | None = None
    """What computed the steps of training."""
    loss: str | None = None
    quantile: float | tuple[float, ...] | None = None
    """One level, or that of every output where these are several quantiles of one target."""
    tweedie_power: float | None = None
    huber_delta: float | None = None
    """Where Huber's loss turns linear, in units of the target's spread."""
    huber_threshold: tuple[float, ...] | None = None
    """The same in units of the target, per output."""
    offset: tuple[str, ...] | None = None
    """Names of the offset's columns; empty where it had no name."""
    baseline: BaselineEntry | None = None
    n_rows: int | None = None
    n_validation_rows: int | None = None
    data_sha256: str | None = None
    """A fingerprint of the training data."""
    n_bad_rows: int | None = None
    n_unknown_rows: int | None = None
    """How many rows were left out because they had no target."""
    target: str | None = None
    weight: str | None = None
    """The name of the column of weights."""
    n_test_rows: int | None = None
    quality: Mapping[str, float] | None = None
    """Measures on the test rows by name."""
    baseline_quality: Mapping[str, float] | None = None
    """The same measures of the baseline."""
    quality_intervals: Mapping[str, list[float]] | None = None
    split: SplitEntry | None = None
    intervals: IntervalsEntry | None = None
    """What the residuals of the model were measured on."""
    constraints: Mapping[str, Any] | None = None
    """What the fit was made to keep, as keyword arguments of ``certify``: ``{"monotone": {"income": "+"}}``."""
    calibration: CalibrationEntry | None = None
    """What the score was multiplied by after training, and what that gained on rows that members held out."""
    edits: tuple[Mapping[str, Any], ...] | None = None
    """What was changed after training, by whom, when and why, the first edit first; see ``nae.editing``."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Entries that this version does not know, such as those of a newer one. Saving keeps them."""

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the outputs, where these are several quantiles of one target; else nothing."""
        return self.quantile if isinstance(self.quantile, tuple) else ()

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> "TrainingSummary":
        """Return the summary that a file holds. An entry of the wrong type is a FormatError."""
        for name, (words, holds) in _RULES.items():
            if name in entries and not holds(entries[name]):
                raise FormatError(f"{name!r} of the training summary must be {words}; got {str(entries[name])[:40]!r}.")
        known: dict[str, Any] = {name: entries[name] for name in _RULES if name in entries}
        lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
        return cls(**known | lists, more={name: value for name, value in entries.items() if name not in _RULES})

    def to_dict(self) -> dict[str, Any]:
        """Return the entries as JSON values, without those that are None."""
        known = {name: getattr(self, name) for name in _RULES}
        entries = {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()}
        return {name: value for name, value in entries.items() if value is not None} | dict(self.more)


Rule = tuple[str, Callable[[Any], bool]]  # in words, and as a test


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


def _is_additivity(value: Any) -> bool:
    return isinstance(value, dict) and _is_number(value.get("asked")) and _is_number(value.get("measured"))


def _is_level(value: Any) -> bool:
    return _is_number(value) or (_lists(_is_number)(value) and len(value) > 0)


def _is_baseline(value: Any) -> bool:
    return (
        isinstance(value, dict) and _lists(_is_number)(value.get("values")) and _or_none(_is_level)(value.get("level"))
    )


def _is_calibration(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(value.get(name)) for name in CalibrationEntry.__annotations__)


def _is_edit(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text(value.get(name)) for name in ("what", "feature", *_SIGNED))


def _is_levels(value: Any) -> bool:
    if not isinstance(value, dict) or not _is_text(value.get("column")) or not _lists(_is_text)(value.get("levels")):
        return False
    counts: list[Any] = [value.get(name) for name in ("n_rows", "n_points")]
    return all(_lists(_is_count)(own) and len(own) == len(value["levels"]) > 0 for own in counts)


def _is_intervals(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("source") not in ("out-of-fold", "calibration"):
        return False
    is_known = _is_count(value.get("n_rows")) and _names(_is_number)(value.get("coverage"))
    return is_known and type(value.get("is_whole", True)) is bool and _or_none(_is_levels)(value.get("by"))


def _is_split(value: Any) -> bool:
    if not isinstance(value, dict) or not _is_text(value.get("rows_sha256")):
        return False
    size: Any = value.get("test_size")
    return _is_number(size) and 0 <= size < 1 and _is_count(value.get("seed"))


_SIGNED = ("who", "when", "why")
_NUMBER: Rule = ("a number", _is_number)
_NUMBER_OR_NULL: Rule = ("a number, or null", _or_none(_is_number))
_NUMBERS: Rule = ("a list of numbers", _lists(_is_number))
_TEXT: Rule = ("a text", _is_text)
_TEXT_OR_NULL: Rule = ("a text, or null", _or_none(_is_text))
_COUNT: Rule = ("a whole number from 0 up", _is_count)
_QUALITY: Rule = ("numbers by name", _names(_is_number))
_RULES: dict[str, Rule] = {
    "intercept_shift": _NUMBERS,
    "additivity": ("'asked' and 'measured', two numbers", _is_additivity),
    "estimator": _TEXT,
    "n_epochs": _COUNT,
    "best_epoch": _COUNT,
    "stopped": _TEXT,
    "validation_loss": _NUMBER_OR_NULL,
    "table_error": _NUMBER_OR_NULL,
    "device": _TEXT,
    "engine": _TEXT,
    "loss": _TEXT,
    "quantile": ("a number, or a list of numbers", _is_level),
    "tweedie_power": _NUMBER,
    "huber_delta": _NUMBER,
    "huber_threshold": _NUMBERS,
    "offset": ("a list of texts, or null", _or_none(_lists(_is_text))),
    "baseline": ("'values', a list of numbers, and 'level', a number, a list of numbers or null", _is_baseline),
    "n_rows": _COUNT,
    "n_validation_rows": _COUNT,
    "data_sha256": _TEXT_OR_NULL,
    "n_bad_rows": _COUNT,
    "n_unknown_rows": _COUNT,
    "target": _TEXT_OR_NULL,
    "weight": _TEXT_OR_NULL,
    "n_test_rows": _COUNT,
    "quality": _QUALITY,
    "baseline_quality": _QUALITY,
    "quality_intervals": ("pairs of numbers by name", _names(_is_pair)),
    "split": ("'rows_sha256', 'test_size' below 1 and 'seed'", _is_split),
    "intervals": (
        "'source', 'out-of-fold' or 'calibration', 'n_rows', 'coverage' by level, and levels of a column as 'by'",
        _is_intervals,
    ),
    "constraints": ("statements by their kind, as 'certify' takes them", is_promises),
    "calibration": ("'slope', 'gain' and 'standard_error', three numbers", _is_calibration),
    "edits": ("a list of edits, each with 'what', 'feature', 'who', 'when' and 'why'", _lists(_is_edit)),
}
