"""Measure a model for every group of rows."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from nae._typing import Array, IntArray
from nae.errors import ConfigError
from nae.quality.grouping import group_rows, read_by
from nae.quality.groups import Gap, Group, Groups, Rate
from nae.quality.measuring import MOST_ROWS, measure_rows
from nae.quality.rates import ERROR, FALSE_POSITIVE, RATIO, SELECTED, TRUE_POSITIVE, rates_of
from nae.quality.resampling import Interval, interval_of, resamples
from nae.quality.rows import MeasuredRows, read_rows

__all__ = ["by_group"]

_GAPS = {
    ERROR: "calibration",
    SELECTED: "demographic parity",
    TRUE_POSITIVE: "equal opportunity",
    FALSE_POSITIVE: "false alarms",
    RATIO: "balance",
    "at or below minus the level": "coverage",
}


def by_group(
    model: Any,
    X: Any,
    y: Any,
    by: Any,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    n_bins: int = 4,
    least_rows: int = 30,
    n_resamples: int = 200,
    seed: int = 0,
) -> Groups:
    """Return how good, how well calibrated and how different a model is for groups of rows, each with an interval.

    Every group has the measures of :func:`nae.quality.measure`, the mean of the actual and of the predicted target, and
    the mean contribution of every feature. A classifier of two classes also has the rates of its second class: how many
    rows are predicted as it (selection rate), and how many of those that are it (true positive rate) or are not (false
    positive rate). The gaps compare the groups where a rate is largest and smallest.

    Parameters
    ----------
    model
        A fitted estimator, or a model from ``nae.load``.
    X, y
        The rows and their truth.
    by
        The name of a column of X, which need not be a feature; an array with a value per row; several names, or a
        mapping of names to arrays, for combinations. Numbers of more than ten values are cut into quantile bins.
    sample_weight, offset
        As in ``measure``.
    n_bins
        Number of bins of a number.
    least_rows
        Groups with fewer rows are called small and are not compared with others, and neither are rates of fewer rows,
        such as the true positive rate of few positives.
    n_resamples, seed
        As in ``measure``. The rows of every group are resampled on their own.

    Examples
    --------
    >>> import numpy as np
    >>> from nae import NAERegressor, quality
    >>> X = {"size": np.arange(200.0), "town": ["Ulm", "Bonn"] * 100}
    >>> model = NAERegressor(random_state=0, n_members=1, max_epochs=2).fit(X, X["size"])
    >>> [group.name for group in quality.by_group(model, X, X["size"], by="town")]
    ['Bonn', 'Ulm']
    """
    if n_resamples < 0:
        raise ConfigError(f"n_resamples must be at least 0; got {n_resamples}.")
    rows = read_rows(model, X, y, sample_weight, offset)
    columns = read_by(by, X, rows.n_given)
    known = {name: array[rows.positions] for name, array in columns.items()}
    found = [
        _measured(rows, name, at, n_resamples=n_resamples, seed=seed, least_rows=least_rows)
        for name, at in group_rows(known, n_bins=n_bins)
    ]
    compared = [one for one in found if not one.group.is_small]
    table = rows.model
    return Groups(
        by=tuple(columns),
        n_rows=len(rows.weight),
        groups=tuple(one.group for one in found),
        gaps=_gaps(compared, least_rows),
        selected=table.classes[1] if len(table.classes) == 2 else "",
        least_rows=least_rows,
        features=table.feature_names,
        outputs=table.outputs,
    )


@dataclass(frozen=True, eq=False)
class _Measured:
    """A group, and its rates in every resample."""

    group: Group
    drawn: dict[str, Array]


def _measured(
    rows: MeasuredRows, name: str, at: IntArray, *, n_resamples: int, seed: int, least_rows: int
) -> _Measured:
    own = rows.take(at)
    n_drawn = n_resamples if len(at) <= MOST_ROWS else 0
    statistics = rates_of(own, own.predict())
    values = own.model.contributions(own.cells).values.reshape(len(at), -1)
    drawn = list(resamples(own.weight, n_resamples=n_drawn, seed=seed))
    rates = {key: np.array([one(weight) for weight in drawn]) for key, one in statistics.items()}
    means = np.array([weight @ values / weight.sum() for weight in drawn]).reshape(n_drawn, values.shape[1])
    shape = (own.model.n_features, own.model.n_outputs)
    lower, upper = np.percentile(means, (2.5, 97.5), axis=0) if n_drawn else np.full((2, values.shape[1]), np.nan)
    group = Group(
        name=name,
        n_rows=len(at),
        share=float(own.weight.sum() / rows.weight.sum()),
        is_small=len(at) < least_rows,
        measures=measure_rows(own, n_resamples=n_drawn, seed=seed).measures,
        rates=tuple(Rate(key, one(own.weight), one.n_rows, interval_of(rates[key])) for key, one in statistics.items()),
        contributions=(own.weight @ values / own.weight.sum()).reshape(shape),
        contribution_lower=lower.reshape(shape),
        contribution_upper=upper.reshape(shape),
    )
    return _Measured(group, rates)


def _gaps(found: list[_Measured], least_rows: int) -> tuple[Gap, ...]:
    """Return the gaps of all rates that are compared between groups."""
    if len(found) < 2:
        return ()
    names = [rate.name for rate in found[0].group.rates if rate.name.partition(",")[0] in _GAPS]
    gaps = [_gap([one for one in found if one.group[name].n_rows >= least_rows], name) for name in names]
    return tuple(gap for gap in gaps if gap is not None)


def _gap(found: list[_Measured], name: str) -> Gap | None:
    """Return the gap between the groups where a rate is largest and smallest; None for fewer than two groups."""
    defined = [one for one in found if np.isfinite(one.group[name].value)]
    if len(defined) < 2:
        return None
    defined.sort(key=lambda one: float(one.group[name].value))
    least, most = defined[0], defined[-1]
    words, _, of = name.partition(", ")
    values = float(most.group[name].value), float(least.group[name].value)
    title = f"{_GAPS[words]} of {of}" if of else _GAPS[words]
    interval, may_be_chance = _doubt(most.drawn[name], least.drawn[name], n_groups=len(defined))
    return Gap(name, title, most.group.name, least.group.name, *values, interval, may_be_chance)


def _doubt(most: Array, least: Array, *, n_groups: int) -> tuple[Interval | None, bool]:
    """Return the interval of the difference of two rates, given in resamples, and whether it may be chance.

    The two groups were chosen because they differ most, so the difference is compared with what chance does in the most
    extreme of all pairs of groups (Bonferroni's correction of 5 %).
    """
    moved = (most - least)[np.isfinite(most - least)] if len(most) == len(least) else np.empty(0)
    if len(moved) < 2:
        return None, False
    n_pairs = n_groups * (n_groups - 1) / 2
    limit = NormalDist().inv_cdf(1 - 0.025 / n_pairs) * float(moved.std())
    return interval_of(moved), bool(moved.mean() <= limit)
