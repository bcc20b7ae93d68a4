"""Scorecards and relativities: a model as a table of bins, which a person can read and a row can be scored with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from nae._files import write_whole
from nae._typing import Array
from nae._words import counted
from nae.decisions.scorecards.parts import CardBin, CardFeature, CardLoss
from nae.decisions.scorecards.scales import FactorScale, PointScale, Scale
from nae.encoding.frames import read_table
from nae.errors import UserError, did_you_mean
from nae.explanation.printed import digest
from nae.explanation.serial import Column, Serial, make_frame
from nae.links import LINKS

__all__ = ["BinCard", "Relativities", "Scorecard"]


@dataclass(frozen=True, eq=False)
class BinCard(Serial):
    """What scorecards and relativities have in common: bins by feature, a base, and the loss of accuracy."""

    unit: ClassVar[str]  # what the table shows: points or factor

    features: tuple[CardFeature, ...]
    output: str  # what the score speaks for
    has_names: bool  # whether the training table had column names
    base: float  # the points or the prediction of a row in the reference bins
    reference: str  # 'average', 'lowest' or 'common'
    decimals: int
    loss: CardLoss

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, feature: str) -> CardFeature:
        """Return the bins of a feature."""
        names = [one.name for one in self.features]
        if feature not in names:
            raise UserError(f"No feature is called {feature!r}.{did_you_mean(feature, names)}")
        return self.features[names.index(feature)]

    def __repr__(self) -> str:
        rows = [(one, bin_) for one in self.features for bin_ in one.bins if bin_.share > 0]
        columns: dict[str, Sequence[str] | Sequence[float]] = {
            "feature": [one.name for one, _ in rows],
            "values": [bin_.label for _, bin_ in rows],
            "rows": [f"{bin_.share:.1%}" for _, bin_ in rows],
            self.unit: [f"{bin_.shown:.{self.decimals}f}" for _, bin_ in rows],
        }
        return digest(f"{self.title}\n  {self.note}", columns, "to_frame(), to_html(path)")

    @property
    def title(self) -> str:
        """A line that says what the table is."""
        return f"{type(self).__name__}({counted(len(self), 'feature')}, {self._base_text})"

    @property
    def note(self) -> str:
        """A sentence that says how far the table is from the model."""
        loss = self.loss
        parts = f"binning {self.scaled(loss.binning)} at most, context {self.scaled(loss.context)}"
        text = (
            f"Difference from the model: root mean square by {parts}; largest for any input {self.scaled(loss.largest)}"
        )
        if loss.measured is None:
            return f"{text}."
        rms, largest = self.scaled(loss.measured.rms), self.scaled(loss.measured.largest)
        return f"{text}. On {counted(loss.measured.n_rows, 'row')}: {rms}, largest {largest}."

    @property
    def scale(self) -> Scale:
        """The map from effects on the score to the numbers of the table."""
        raise NotImplementedError

    @property
    def _base_text(self) -> str:
        raise NotImplementedError

    def scaled(self, difference: float) -> str:
        """Return a difference of scores as a text in the unit of the table."""
        raise NotImplementedError

    def score(self, X: Any) -> Array:
        """Return what the table says of every row."""
        raise NotImplementedError

    def as_score(self, shown: Any) -> Array:
        """Return the score of the model that points or a prediction stand for."""
        raise NotImplementedError

    def _values(self, X: Any) -> Iterator[Array]:
        """Yield the points or factors of every row, feature by feature."""
        names = [one.name for one in self.features]
        columns = read_table(X, only=names if self.has_names else None)
        if columns.names is not None and self.has_names:
            columns = columns.select(names)
        if len(columns.arrays) != len(self):
            raise UserError(f"The table must have {counted(len(self), 'column')}; got {len(columns.arrays)}.")
        for feature, column in zip(self.features, columns.arrays, strict=True):
            yield np.array([one.shown for one in feature.bins])[feature.find(column)]

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The table by columns, one row per bin. The first row is the base."""
        rows: list[tuple[Any, ...]] = [("(base)", "", np.nan, np.nan, 1.0, self.base, *[np.nan] * 5)]
        for feature in self.features:
            rows += [(feature.name, one.label, *_numbers(one)) for one in feature.bins]
        names = ("feature", "values", "from", "below", "share", self.unit, f"least_{self.unit}", f"most_{self.unit}")
        table = zip(*rows, strict=True)
        return dict(zip((*names, "effect", "lower", "upper"), (list(column) for column in table), strict=True))

    @cached_property
    def losses(self) -> Mapping[str, Column]:
        """What the table costs in accuracy, one row per feature and one for all, in units of the score."""
        rows: list[tuple[Any, ...]] = [
            (one.name, len(one.bins), one.binning, one.context, one.rounding, one.largest) for one in self.features
        ]
        total = self.loss
        n_bins = sum(len(one.bins) for one in self.features)
        rows.append(("(all)", n_bins, total.binning, total.context, total.rounding, total.largest))
        names = ("feature", "bins", "binning_rms", "context_rms", "rounding", "largest")
        return dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))

    def to_frame(self, backend: str = "pandas", *, level: str = "bins") -> Any:
        """Return a data frame: one row per bin (``level='bins'``), or the loss per feature (``level='features'``)."""
        if level not in ("bins", "features"):
            raise UserError(f"level must be 'bins' or 'features'; got {level!r}.")
        return make_frame(self.columns if level == "bins" else self.losses, backend)

    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None:
        """Write one line per bin to a CSV file, or return the text if no path is given."""
        from nae.decisions.scorecards.text import as_csv

        text = as_csv(self.columns)
        if path is None:
            return text
        write_whole(path, text)
        return None

    def to_excel(self, path: str | PathLike[str]) -> None:
        """Write a workbook with the bins, the losses, and a page about how to read them."""
        from nae.decisions.scorecards.excel import workbook_of

        write_whole(path, workbook_of(self))

    def to_html(self, path: str | PathLike[str] | None = None) -> str | None:
        """Write a page that needs nothing else, or return its text if no path is given."""
        from nae.decisions.scorecards.page import page_of

        text = page_of(self)
        if path is None:
            return text
        write_whole(path, text)
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Scorecard(BinCard):
    """Points that add up: the more, the likelier the class."""

    type_name: ClassVar[str] = "scorecard"
    unit: ClassVar[str] = "points"

    base_score: float  # the points at the given odds
    points_to_double: float  # the points that double the odds
    odds: float

    @property
    def scale(self) -> PointScale:
        return PointScale(self.points_to_double / np.log(2.0), self.decimals)

    @property
    def _base_text(self) -> str:
        return f"base {self.base:.{self.decimals}f}, {self.points_to_double:g} points double the odds of {self.output}"

    def scaled(self, difference: float) -> str:
        return f"{difference * self.scale.per_unit:.{self.decimals + 1}f} points"

    def score(self, X: Any) -> Array:
        """Return the points of every row: the base plus the points of its bins."""
        return np.asarray(self.base + sum(self._values(X)))

    def as_score(self, shown: Any) -> Array:
        """Return the log-odds that some points stand for."""
        return np.asarray(self.scale.effects(np.asarray(shown) - self.base_score) + np.log(self.odds))

    def probability(self, points: Any) -> Array:
        """Return the probability of the class that some points stand for."""
        return LINKS["logit"].inverse(self.as_score(points))


@dataclass(frozen=True, eq=False, repr=False)
class Relativities(BinCard):
    """Factors that multiply to the prediction."""

    type_name: ClassVar[str] = "relativities"
    unit: ClassVar[str] = "factor"

    @property
    def scale(self) -> FactorScale:
        return FactorScale(self.decimals)

    @property
    def _base_text(self) -> str:
        return f"base {self.base:.6g}"

    def scaled(self, difference: float) -> str:
        return f"{100 * np.expm1(difference):.2f} %"

    def score(self, X: Any) -> Array:
        """Return the prediction of every row: the base times the factors of its bins."""
        total = np.full(1, self.base)
        for values in self._values(X):
            total = total * values
        return np.asarray(total)

    def as_score(self, shown: Any) -> Array:
        """Return the logarithm of a prediction."""
        return np.asarray(np.log(shown))


def _numbers(one: CardBin) -> tuple[float, ...]:
    return (one.low, one.high, one.share, one.shown, one.least, one.most, one.effect, one.lower, one.upper)
