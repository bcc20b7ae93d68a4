"""The loss a model was fitted to, and the baseline: a prediction from the target of the training rows alone."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, IntArray
from nae._words import quantiles
from nae.encoding.target import TargetMoments
from nae.links import Link, link_named
from nae.quality.formulas import quantile_of
from nae.tables.summary import BaselineEntry, TrainingSummary

__all__ = ["Baseline", "Criterion"]

_POWERS = {"poisson": 1.0, "gamma": 2.0}


@dataclass(frozen=True)
class Criterion:
    """The loss of a regression, with its parameter."""

    loss: str = "squared"
    level: float | tuple[float, ...] | None = None  # the quantile, or one per output; 0.5 for the absolute error
    power: float | None = None  # the power of the deviance
    thresholds: tuple[float, ...] = ()  # where Huber's loss becomes linear, per output

    @staticmethod
    def of(training: TrainingSummary) -> "Criterion":
        """Return the criterion of a model's training summary; the squared error if the summary has none."""
        loss = training.loss or "squared"
        quantile = 0.5 if training.quantile is None else training.quantile
        tweedie_power = 1.5 if training.tweedie_power is None else training.tweedie_power
        level = quantile if loss == "quantile" else 0.5 if loss == "absolute" else None
        power = {**_POWERS, "tweedie": tweedie_power}.get(loss)
        return Criterion(loss, level, power, training.huber_threshold or ())

    def level_of(self, output: int) -> float | None:
        """Return the quantile that an output predicts; None where it predicts the mean."""
        return self.level[output] if isinstance(self.level, tuple) else self.level

    @property
    def domain(self) -> str:
        """The targets for which the loss is defined."""
        if self.power is None:
            return "any"
        return "positive" if self.power == 2 else "non-negative"


@dataclass(frozen=True)
class Baseline:
    """The baseline: one score for all rows, plus the offset if there is one, or the shares of the classes.

    With a log link and an offset, the score is the logarithm of a rate: the summed targets over the summed exposures.
    """

    values: tuple[float, ...]  # scores per output, or shares per class
    is_shares: bool = False
    level: float | tuple[float, ...] | None = None  # a quantile, or one per output, rather than the mean
    has_offset: bool = False
    link: str = "identity"

    @staticmethod
    def of_numbers(
        truth: Array, weight: Array, offset: Array | None, *, criterion: Criterion, link: Link
    ) -> "Baseline":
        """Return the baseline of targets and offsets, (row, output) each."""
        base = np.zeros_like(truth) if offset is None else np.broadcast_to(offset, truth.shape)
        if criterion.level is None:
            return Baseline.of_moments(TargetMoments.of(truth, base, weight), link, has_offset=offset is not None)
        rests = (truth - base).T
        values = [quantile_of(rest, criterion.level_of(o) or 0.5)(weight) for o, rest in enumerate(rests)]
        return Baseline(tuple(values), level=criterion.level, has_offset=offset is not None, link=link.name)

    @staticmethod
    def of_moments(moments: TargetMoments, link: Link, *, has_offset: bool = False) -> "Baseline":
        """Return the baseline from the means of targets and offsets."""
        values = moments.mean
        if link.name == "log":
            values = np.log(np.maximum(moments.level, 1e-300)) - moments.log_exposure
        return Baseline(tuple(values.tolist()), has_offset=has_offset, link=link.name)

    @staticmethod
    def of_shares(total: Array) -> "Baseline":
        """Return the baseline from the weight of every class."""
        return Baseline(tuple((total / total.sum()).tolist()), is_shares=True)

    @staticmethod
    def of_classes(codes: IntArray, weight: Array, n_classes: int) -> "Baseline":
        """Return the baseline of the classes of rows."""
        return Baseline.of_shares(np.bincount(codes, weight, minlength=n_classes).astype(np.float64))

    @property
    def words(self) -> str:
        """A name for the constant prediction."""
        if self.is_shares:
            return "the classes' shares"
        if self.level is not None:
            what = _quantiles(self.level)
            return f"{what}, plus the offset" if self.has_offset else what
        if self.has_offset:
            return "one rate for all" if self.link == "log" else "the mean, plus the offset"
        return "the mean"

    def predict(self, n_rows: int, offset: Array | None) -> Array:
        """Return the predictions of the baseline, (row, output) or (row, class)."""
        values = np.broadcast_to(np.array(self.values), (n_rows, len(self.values)))
        if self.is_shares:
            return values
        return link_named(self.link).inverse(values if offset is None else values + offset)

    def to_entry(self) -> BaselineEntry:
        """Return the baseline as JSON values of a model's training summary."""
        return {"values": list(self.values), "level": list(self.level) if isinstance(self.level, tuple) else self.level}

    @staticmethod
    def of(training: TrainingSummary, *, is_classes: bool, link: Link) -> "Baseline | None":
        """Return the baseline from a model's training summary, if the summary has one."""
        found = training.baseline
        if found is None:
            return None
        has_offset = training.offset is not None
        given = found.get("level")
        level = tuple(given) if isinstance(given, list) else given
        return Baseline(tuple(map(float, found["values"])), is_classes, level, has_offset, link.name)


def _quantiles(level: float | tuple[float, ...]) -> str:
    """Return the name of a quantile, or of several."""
    if level == 0.5:
        return "the median"
    if not isinstance(level, tuple):
        return f"the {100 * level:g} % quantile"
    return f"the {quantiles(level)}"
