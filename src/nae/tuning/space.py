"""Search spaces: the parameters that vary, described without reference to a search engine."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nae.errors import ConfigError, did_you_mean
from nae.recipes import NUMBERS

__all__ = ["DEFAULT_SPACE", "Choice", "Range", "SearchSpace"]


@dataclass(frozen=True)
class Range:
    """A parameter that is a number in a range."""

    name: str
    low: float
    high: float
    default: float
    """The estimator's default."""
    is_log: bool = True
    """Whether the number is sampled on a log scale."""

    def __post_init__(self) -> None:
        if not self.low <= self.default <= self.high or self.low == self.high:
            raise ConfigError(
                f"{self.name}: low <= default <= high must hold; got {self.low}, {self.default}, {self.high}."
            )
        if self.is_log and self.low <= 0:
            raise ConfigError(f"{self.name}: a logarithmic range must be positive; it begins at {self.low}.")

    def holds(self, value: Any) -> bool:
        """Return whether a value lies in the range."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        return is_number and self.low <= value <= self.high


@dataclass(frozen=True)
class Choice:
    """A parameter that is one of several values. None leaves the choice to the estimator."""

    name: str
    options: tuple[float | int | str | bool | None, ...]
    default: float | int | str | bool | None

    def __post_init__(self) -> None:
        if self.default not in self.options:
            raise ConfigError(f"{self.name}: the default must be one of the options; {self.default!r} is not.")

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of the options."""
        return value in self.options


@dataclass(frozen=True)
class SearchSpace:
    """The estimator parameters that vary, each with a range or with options.

    Examples
    --------
    >>> space = SearchSpace((Range("learning_rate", 1e-3, 2e-2, default=5e-3), Choice("n_experts", (4, 8), default=8)))
    >>> space.defaults()
    {'learning_rate': 0.005, 'n_experts': 8}
    """

    parameters: tuple[Range | Choice, ...]

    def __post_init__(self) -> None:
        names = self.names
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"A search space must name each parameter once, and at least one; got {list(names)}.")

    def __iter__(self) -> Iterator[Range | Choice]:
        return iter(self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that vary."""
        return tuple(parameter.name for parameter in self.parameters)

    def defaults(self) -> dict[str, Any]:
        """Return the settings of the first trial of every study."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    def without(self, *names: str) -> "SearchSpace":
        """Return the space without some parameters, which then do not vary."""
        for name in names:
            if name not in self.names:
                raise ConfigError(f"The space has no parameter {name!r}.{did_you_mean(name, self.names)}")
        return SearchSpace(tuple(parameter for parameter in self.parameters if parameter.name not in names))

    def check(self, known: Mapping[str, Any]) -> None:
        """Raise an error for a parameter that the estimator does not have."""
        for name in self.names:
            if name not in known:
                raise ConfigError(f"The estimator has no parameter {name!r}.{did_you_mean(name, known)}")


DEFAULT_SPACE = SearchSpace(
    (
        Choice("additivity", (None, 0.7, 0.8, 0.9, 0.95), default=None),
        Choice("n_experts", (None, 4, 8, 16), default=None),
        Range("learning_rate", 2e-3, 1.2e-2, default=NUMBERS.learning_rate),
        Range("variation_penalty", 1e-3, 3.0, default=NUMBERS.variation_penalty),
        Range("context_penalty", 5e-3, 1.0, default=NUMBERS.context_penalty),
        Choice("weight_decay", (None, 0.03, 0.1, 0.3, 1.0, 3.0), default=None),
        Choice("batch_size", (None, 256, 512, 1024), default=None),
        Choice("hidden_dim", (None, 16, 32, 64), default=None),
    )
)
"""The most important parameters, with ranges around their defaults."""
