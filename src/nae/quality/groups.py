"""Quality by group: measures, calibration, rates and mean contributions of every group of rows, with intervals."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._printed import digest
from nae._serial import Column, Serial, make_frame
from nae._typing import Array
from nae._words import counted
from nae.errors import UserError, did_you_mean
from nae.quality.measuring import Measure

__all__ = ["Gap", "Group", "Groups", "Rate"]

_MOST_FEATURES = 3  # whose mean contributions are told
_MOST_SMALL = 8  # groups that are named


@dataclass(frozen=True)
class Rate:
    """One rate of a group, and its range over 95 % of the resamples of the group's rows; None without resamples."""

    name: str
    value: float
    n_rows: int  # that the rate is about: for a true positive rate, the positives
    interval: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Gap:
    """By how much a rate differs between the group where it is largest and the one where it is smallest."""

    rate: str
    words: str  # what the gap is called, such as 'equal opportunity'
    most: str
    least: str
    most_value: float
    least_value: float
    interval: tuple[float, ...] | None = None
    may_be_chance: bool = False  # whether chance makes as large a gap between the most extreme of as many groups

    @property
    def value(self) -> float:
        """The difference of the rates."""
        return self.most_value - self.least_value

    @property
    def sentence(self) -> str:
        """The gap in words."""
        rates = f"{self.most_value:.3g} for {self.most} and {self.least_value:.3g} for {self.least}"
        chance = ", which may be chance" if self.may_be_chance else ""
        name, gap = f"{self.words[0].upper()}{self.words[1:]}", _with_interval(self.value, self.interval)
        return f"{name}: {self.rate} {rates}; a gap of {gap}{chance}."


@dataclass(frozen=True, eq=False)
class Group:
    """One group of rows."""

    name: str
    n_rows: int
    share: float  # of the weight of all rows
    is_small: bool  # whether it has too few rows to be compared
    measures: tuple[Measure, ...]
    rates: tuple[Rate, ...]
    contributions: Array  # (feature, output), the mean contribution
    contribution_lower: Array  # the ends of its range over 95 % of the resamples; NaN without resamples
    contribution_upper: Array

    def __getitem__(self, name: str) -> Any:
        found = self.found
        if name not in found:
            raise UserError(f"No measure or rate is called {name!r}.{did_you_mean(name, found, is_listed=True)}")
        return found[name]

    @property
    def found(self) -> dict[str, Measure | Rate]:
        """Measures and rates by name: the first measure, the rates, and the other measures."""
        every: tuple[Measure | Rate, ...] = (*self.measures[:1], *self.rates, *self.measures[1:])
        return {one.name: one for one in every}


@dataclass(frozen=True, eq=False)
class Groups(Serial):
    """The quality of a model for every group of rows.

    ``groups["Female"]["AUC"]`` is a measure, and ``groups["Female"]["selection rate"]`` a rate, each with an interval.
    """

    type_name: ClassVar[str] = "groups"

    by: tuple[str, ...]  # the columns that divide the rows
    n_rows: int
    groups: tuple[Group, ...]
    gaps: tuple[Gap, ...]
    selected: str  # the class that rates are about; empty for numbers and for more than two classes
    least_rows: int  # of a group that is compared
    features: tuple[str, ...]
    outputs: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __getitem__(self, name: str) -> Group:
        found = {one.name: one for one in self.groups}
        if name not in found:
            raise UserError(f"No group is called {name!r}.{did_you_mean(name, found, is_listed=True)}")
        return found[name]

    def __repr__(self) -> str:
        title = f"Groups(by {' and '.join(self.by)}, {counted(len(self), 'group')}, {counted(self.n_rows, 'row')})"
        columns: dict[str, list[str] | list[float]] = {
            "group": [one.name + (" (small)" if one.is_small else "") for one in self.groups],
            "rows": [f"{one.n_rows:,}" for one in self.groups],
        }
        for name in self.names[:4]:
            columns[name] = [_value_in(one, name) for one in self.groups]
        return digest(title, columns, "text, to_frame()")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of measures and rates; a group with rows of one class alone lacks some."""
        return max((tuple(one.found) for one in self.groups), key=len)

    @property
    def small(self) -> tuple[str, ...]:
        """The names of the groups that have too few rows to be compared."""
        return tuple(one.name for one in self.groups if one.is_small)

    @property
    def text(self) -> str:
        """The gaps in words, where contributions differ, and which groups are too small."""
        lines = [f"Rates are those of the class {self.selected!r}."] if self.selected else []
        lines += [*(gap.sentence for gap in self.gaps), *self._different]
        if self.small:
            lines.append(f"Too small to be compared (fewer than {self.least_rows} rows): {_listed(self.small)}.")
        return "\n".join(lines)

    @property
    def _different(self) -> list[str]:
        """Where the mean contributions of the groups differ most; for one output."""
        compared = [one for one in self.groups if not one.is_small]
        if len(compared) < 2 or len(self.outputs) > 1:
            return []
        means = np.stack([one.contributions[:, 0] for one in compared])
        told = []
        for i in np.argsort(-np.ptp(means, axis=0), kind="stable")[:_MOST_FEATURES]:
            most, least = int(means[:, i].argmax()), int(means[:, i].argmin())
            ends = (
                f"{means[most, i]:.2g} for {compared[most].name} and {means[least, i]:.2g} for {compared[least].name}"
            )
            told.append(f"{self.features[i]} ({ends})")
        return [f"Mean contributions differ most in {'; '.join(told)}."]

    def to_frame(self, backend: str = "pandas", *, level: str = "groups") -> Any:
        """Return a data frame.

        ``level='groups'`` has one row per group; ``'measures'`` one per group and measure or rate, with intervals;
        ``'contributions'`` one per group, feature and output.
        """
        levels = {"groups": self._of_groups, "measures": self._of_measures, "contributions": self._of_contributions}
        if level not in levels:
            raise UserError(f"level must be one of {sorted(levels)}; got {level!r}.")
        return make_frame(levels[level](), backend)

    def _of_groups(self) -> dict[str, Column]:
        columns: dict[str, Column] = {
            "group": [one.name for one in self.groups],
            "rows": [one.n_rows for one in self.groups],
            "share": [one.share for one in self.groups],
            "small": [one.is_small for one in self.groups],
        }
        return columns | {name: [_value_in(one, name) for one in self.groups] for name in self.names}

    def _of_measures(self) -> dict[str, Column]:
        rows = [(group, one) for group in self.groups for one in group.found.values()]
        ends = [one.interval or (np.nan, np.nan) for _, one in rows]
        return {
            "group": [group.name for group, _ in rows],
            "name": [one.name for _, one in rows],
            "value": [one.value for _, one in rows],
            "lower": [end[0] for end in ends],
            "upper": [end[1] for end in ends],
        }

    def _of_contributions(self) -> dict[str, Column]:
        places = [(i, o) for i in range(len(self.features)) for o in range(len(self.outputs))]
        cells = [(group, *place) for group in self.groups for place in places]
        return {
            "group": [group.name for group, _, _ in cells],
            "feature": [self.features[i] for _, i, _ in cells],
            "output": [self.outputs[o] for _, _, o in cells],
            "mean": [float(group.contributions[i, o]) for group, i, o in cells],
            "lower": [float(group.contribution_lower[i, o]) for group, i, o in cells],
            "upper": [float(group.contribution_upper[i, o]) for group, i, o in cells],
        }


def _listed(names: tuple[str, ...]) -> str:
    left = len(names) - _MOST_SMALL
    return "; ".join(names[:_MOST_SMALL]) + (f"; and {left} more" if left > 0 else "")


def _value_in(group: Group, name: str) -> float:
    """Return a measure or rate of a group; NaN where the group has none, as an AUC without both classes."""
    one = group.found.get(name)
    return np.nan if one is None else one.value


def _with_interval(value: float, interval: tuple[float, ...] | None) -> str:
    return f"{value:.3g}" + ("" if interval is None else f" ({interval[0]:.3g} to {interval[1]:.3g})")
