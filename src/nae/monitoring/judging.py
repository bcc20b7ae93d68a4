"""Judge drift: compare the sums over new rows with the statistics of the training rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.beside import read_weight
from nae.encoding.columns import Columns
from nae.encoding.schema import Feature
from nae.errors import ConfigError, DataError
from nae.explanation.statistics import with_statistics
from nae.monitoring.bins import bins_of, counts_in
from nae.monitoring.checks import Check, check_mean, check_share, check_shares, worst
from nae.monitoring.reference import Reference
from nae.monitoring.results import Drift, FeatureDrift
from nae.monitoring.tally import Tally, has_range
from nae.quality.chance import chi_square_critical
from nae.tables.model import TableModel

__all__ = ["LEVEL", "LIMIT", "judge", "measure_drift"]

LIMIT = 0.2  # the size from which a difference that chance does not explain is drift
LEVEL = 0.01  # the probability that anything is called drift if nothing changed
_BINS = 10  # for which the smallest index is stated that can be told from chance


def measure_drift(
    model: TableModel,
    read: Callable[[Any], Columns],
    X: Any,
    *,
    sample_weight: Any = None,
    reference: Any = None,
    limit: float = LIMIT,
    level: float = LEVEL,
) -> Drift:
    """Return the drift of a table; see :meth:`nae.tables.answers.watches.Watches.drift`."""
    columns, n_reference = read(X), None
    if reference is not None:
        rows = read(reference)
        model, n_reference = with_statistics(model, rows), rows.n_rows
    tally = Tally(model)
    tally.add(columns, read_weight(sample_weight, columns.n_rows))
    return judge(tally, limit=limit, level=level, n_reference=n_reference)


def judge(tally: Tally, *, limit: float = LIMIT, level: float = LEVEL, n_reference: int | None = None) -> Drift:
    """Return the drift of the rows of a tally; ``n_reference`` are the rows of its model's statistics, if known."""
    if not (np.isfinite(limit) and limit >= 0):
        raise ConfigError(f"limit must be at least 0, a population stability index; got {limit!r}.")
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1, a probability; got {level!r}.")
    if not tally.weight > 0:
        raise DataError("Drift needs rows of positive weight; got none.")
    return _Judge(tally, Reference.of(tally.model, n_reference)).drift(limit, level)


class _Judge:
    """The rows of a tally beside the training rows."""

    def __init__(self, tally: Tally, reference: Reference) -> None:
        self.tally, self.reference, self.model = tally, reference, tally.model
        self.n_now, self.n_then = tally.effective_rows, reference.n_rows
        self.means_then, self.means_now = reference.means, tally.sums / tally.weight
        self.own_now = tally.own / tally.weight
        self.spread = np.sqrt(reference.statistics.score_variance)

    def drift(self, limit: float, level: float) -> Drift:
        found = [self.feature(i, feature) for i, feature in enumerate(self.model.schema.features)]
        score = self.score()
        n_checks = sum(len(one.checks) for one in found) + len(score)

        def judged(one: FeatureDrift) -> FeatureDrift:
            return replace(one, verdict=worst([check.verdict(limit, level / n_checks) for check in one.checks]))

        return Drift(
            n_rows=self.tally.n_rows,
            n_training_rows=round(self.n_then),
            limit=float(limit),
            level=float(level),
            n_checks=n_checks,
            least=chi_square_critical(level / n_checks, _BINS) * (1 / self.n_now + 1 / self.n_then),
            features=tuple(map(judged, found)),
            score=score,
            spread_then=self.spread,
            spread_now=self._score_spread(),
        )

    def feature(self, i: int, feature: Feature) -> FeatureDrift:
        slots = self.model.schema.slots(i)
        then, now = self.reference.weight(i), self.tally.slots[slots]
        known = now[: feature.n_values].sum()
        mean = self.tally.totals[i] / known if known > 0 else np.nan
        values = _values(feature, then, now, n_then=self.n_then, n_now=self.n_now, mean_now=mean)
        label, share_then, share_now = _label(feature, then, now)
        from_values = self.own_now[i] - self.means_then[i]
        return FeatureDrift(
            name=feature.name,
            kind=feature.kind,
            verdict="",
            checks=(values, *self._shares(i, feature, then, now), *self._contributions(i)),
            distance=_distance(then[: feature.n_values], now[: feature.n_values]),
            label=label,
            label_then=share_then,
            label_now=share_now,
            from_values=from_values,
            from_context=self.means_now[i] - self.means_then[i] - from_values,
        )

    def _shares(self, i: int, feature: Feature, then: Array, now: Array) -> list[Check]:
        n = {"n_now": self.n_now, "n_then": self.n_then}
        missing, total = feature.n_values, self.tally.weight
        found = [check_share("missing", now[missing] / total, then[missing] / then.sum(), **n)]
        if has_range(feature):
            return [*found, check_share("beyond", self.tally.beyond[i] / total, self.reference.beyond_share, **n)]
        unseen = now[missing + 1] / total
        return [*found, check_share("unseen", unseen, self.reference.unseen_share(feature, then), **n)]

    def _contributions(self, i: int) -> list[Check]:
        tally, variance = self.tally, self.reference.statistics.variance[i]
        now = np.maximum(tally.squares[i] / tally.weight - self.means_now[i] ** 2, 0.0)
        return self._means("contribution", self.means_now[i], self.means_then[i], now, variance)

    def score(self) -> tuple[Check, ...]:
        """Return the checks of the mean score."""
        now = self.model.intercept + self.tally.score / self.tally.weight
        then = self.model.intercept + self.means_then.sum(axis=0)
        variance = self.reference.statistics.score_variance
        return tuple(self._means("score", now, then, self._score_spread() ** 2, variance))

    def _means(self, what: str, now: Array, then: Array, variance_now: Array, variance_then: Array) -> list[Check]:
        # If nothing changed, both variances are one. In few rows, the new one may lack the rare large values, and if it
        # holds one of them, it says how little the mean is known.
        error = np.sqrt(np.maximum(variance_now, variance_then) * (1 / self.n_now + 1 / self.n_then))
        names = self.model.outputs if self.model.n_outputs > 1 else ("",)
        return [
            check_mean(what, *map(float, pair), error=float(error[o]), unit=float(self.spread[o]), output=names[o])
            for o, pair in enumerate(zip(now, then, strict=True))
        ]

    def _score_spread(self) -> Array:
        tally = self.tally
        mean = tally.score / tally.weight
        return np.sqrt(np.maximum(tally.score_squares / tally.weight - mean**2, 0.0))


def _values(feature: Feature, then: Array, now: Array, *, n_then: float, n_now: float, mean_now: float) -> Check:
    """Return the check of the values that are neither missing nor unseen."""
    known_then, known_now = then[: feature.n_values], now[: feature.n_values]
    rows_then, rows_now = n_then * _share(known_then, then), n_now * _share(known_now, now)
    bins = bins_of(feature, known_then, rows_now)
    counts = counts_in(bins, known_now, rows_now), counts_in(bins, known_then, rows_then)
    means = (_mean(feature.knots, known_then), mean_now) if has_range(feature) else None
    return check_shares(*counts, means=means)


def _label(feature: Feature, then: Array, now: Array) -> tuple[str, float, float]:
    """Return the level whose share of the known values moved most, and its shares."""
    if feature.kind == "number":
        return "", np.nan, np.nan
    shares = [known / known.sum() if known.sum() > 0 else known for known in (then[:-2], now[:-2])]
    at = int(np.abs(shares[1] - shares[0]).argmax())
    return feature.labels[at], float(shares[0][at]), float(shares[1][at])


def _distance(then: Array, now: Array) -> float:
    """Return the total variation between two distributions over the same values."""
    if not (then.sum() > 0 and now.sum() > 0):
        return 0.0
    return float(np.abs(then / then.sum() - now / now.sum()).sum() / 2)


def _share(part: Array, whole: Array) -> float:
    total = float(whole.sum())
    return float(part.sum()) / total if total > 0 else 0.0


def _mean(values: Array, weight: Array) -> float:
    total = float(weight.sum())
    return float(weight @ values / total) if total > 0 else np.nan
