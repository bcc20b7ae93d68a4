"""Measure a model and the baseline on rows whose truth is known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.target import check_domain
from nae.errors import ConfigError, UserError
from nae.links import link_named
from nae.quality import formulas
from nae.quality.baseline import Baseline, Criterion
from nae.quality.formulas import Statistic
from nae.quality.resampling import Interval, interval_of, resamples
from nae.quality.rows import MeasuredRows, read_rows
from nae.tables.summary import TrainingSummary

__all__ = [
    "MOST_ROWS",
    "Measure",
    "Quality",
    "explained",
    "measure",
    "measure_classes",
    "measure_numbers",
    "measure_rows",
]

MOST_ROWS = 50_000
"""With more rows, no interval is computed: it would be narrow and take seconds."""

OF_ANY_LOSS = frozenset({"RMSE", "mean absolute error", "R²", "Gini"})
"""Measures of numbers that can be compared between models of different losses."""

_BETTER_HIGH = frozenset({"R²", "D²", "Gini", "AUC", "average precision", "accuracy"})
_TITLES = {
    "RMSE": "root mean squared error",
    "R²": "explained variance, R²",
    "D²": "explained share of the loss, D²",
    "Gini": "ranking, normalised Gini",
    "AUC": "area under the ROC curve",
    "calibration error": "expected calibration error",
}
_DEVIANCES = {"poisson": "Poisson deviance", "gamma": "gamma deviance", "tweedie": "Tweedie deviance"}


@dataclass(frozen=True)
class Measure:
    """One measure of the predictions of a model and of the baseline.

    Attributes
    ----------
    name
        A short name, such as 'RMSE'; ``title`` is the long one.
    value, baseline
        The measure of the model, and that of the baseline, which knows only the target of the training rows.
    better
        'lower' or 'higher'.
    interval
        The range of the value over 95 % of the resamples of the rows; None if none were drawn.
    """

    name: str
    value: float
    baseline: float
    better: str
    interval: tuple[float, float] | None = None

    @property
    def title(self) -> str:
        """The name in words."""
        return _TITLES.get(self.name, self.name)

    @property
    def gain(self) -> float:
        """How much better the model is than the baseline; for losses, as a share of the baseline's loss."""
        gain = self.value - self.baseline if self.better == "higher" else self.baseline - self.value
        return gain / self.baseline if self.has_share else gain

    @property
    def has_share(self) -> bool:
        """Whether the gain is a share: not if the baseline's loss is zero, or zero by design as in calibration."""
        return self.better == "lower" and self.baseline > 0 and self.name != "calibration error"


@dataclass(frozen=True)
class Quality:
    """The measures of a model, the most telling first, and the name of the baseline.

    ``quality["RMSE"]`` is the :class:`Measure` of that name.
    """

    measures: tuple[Measure, ...]
    n_rows: int
    baseline: str  # the constant prediction of the baseline, in words

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    def __getitem__(self, name: str) -> Measure:
        return {one.name: one for one in self.measures}[name]

    def remembered_in(self, training: TrainingSummary) -> TrainingSummary:
        """Return a model's training summary with these measures; :meth:`of` reads them."""
        return replace(
            training,
            quality={one.name: one.value for one in self},
            baseline_quality={one.name: one.baseline for one in self},
            quality_intervals={one.name: list(one.interval) for one in self if one.interval is not None},
        )

    @staticmethod
    def of(training: TrainingSummary) -> tuple[Measure, ...]:
        """Return the measures stored in a model's training summary."""
        found, rule = training.quality, training.baseline_quality
        if found is None or rule is None:
            return ()
        intervals = training.quality_intervals or {}
        return tuple(
            Measure(name, float(value), float(rule[name]), _better(name), _pair(intervals.get(name)))
            for name, value in found.items()
            if name in rule
        )


def measure(
    model: Any, X: Any, y: Any, *, sample_weight: Any = None, offset: Any = None, n_resamples: int = 200, seed: int = 0
) -> Quality:
    """Return how good a model is on rows whose truth is known, compared with a baseline that knows only the target.

    The measures follow from the loss the model was fitted to. The baseline is the weighted mean, the quantile or the
    class shares of the training rows, which the model remembers. If a model does not have it, the measured rows give
    the baseline. Rows without a truth or with weight zero are left out.

    Parameters
    ----------
    model
        A fitted estimator, or a model from ``nae.load``.
    X, y
        The rows and their truth.
    sample_weight
        One weight per row. Weight 2 counts the row twice, weight 0 leaves it out.
    offset
        As in ``fit``. A model that was fitted with an offset cannot be measured without one.
    n_resamples, seed
        The number of resamples for the intervals, and the random seed. There are no intervals with ``n_resamples=0``
        or with more than 50,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from nae import NAERegressor, quality
    >>> X = np.random.default_rng(0).uniform(size=(200, 1))
    >>> model = NAERegressor(random_state=0, n_members=1, max_epochs=2).fit(X, X[:, 0])
    >>> [one.name for one in quality.measure(model, X, X[:, 0])]
    ['RMSE', 'mean absolute error', 'R²']
    """
    return measure_rows(read_rows(model, X, y, sample_weight, offset), n_resamples=n_resamples, seed=seed)


def measure_rows(rows: MeasuredRows, *, n_resamples: int = 200, seed: int = 0) -> Quality:
    """Return the quality on rows that have already been read."""
    rule, predicted = rows.baseline(), rows.predict()
    if n_resamples < 0:
        raise ConfigError(f"n_resamples must be at least 0; got {n_resamples}.")
    weight, model = rows.weight, rows.model
    drawn = {"n_resamples": n_resamples, "seed": seed}
    if model.classes:
        chosen = model.choose(predicted)
        return measure_classes(rows.codes, predicted, chosen=chosen, baseline=rule, sample_weight=weight, **drawn)
    return measure_numbers(
        rows.truth,
        predicted,
        criterion=Criterion.of(model.training),
        baseline=rule,
        sample_weight=weight,
        offset=rows.offset,
        link=model.link.name,
        **drawn,
    )


def explained(model: Any, X: Any, y: Any, *, sample_weight: Any = None, offset: Any = None) -> float:
    """Return by which share a regression reduces the loss of the best constant. Its ``score`` returns the same.

    This is R² for the squared and the Huber loss, and D² for the other losses. Several outputs count equally.
    """
    rows = read_rows(model, X, y, sample_weight, offset)
    if rows.model.classes:
        raise UserError("explained needs a model of numbers; this one predicts classes. Use measure.")
    criterion = Criterion.of(rows.model.training)
    check_domain(float(rows.truth.min()), criterion.domain)
    exposure = _exposure(rows.truth, rows.offset, rows.model.link.name)
    columns = zip(rows.truth.T, rows.predict().T, exposure.T, strict=True)
    each = [_explained(criterion, *three, level=criterion.level_of(o))[1] for o, three in enumerate(columns)]
    return float(np.mean([one(rows.weight) for one in each]))


def measure_numbers(
    truth: Array,
    predicted: Array,
    *,
    criterion: Criterion = Criterion(),  # noqa: B008
    baseline: Baseline | None = None,
    offset: Array | None = None,
    link: str = "identity",
    sample_weight: Array | None = None,
    n_resamples: int = 0,
    seed: int = 0,
) -> Quality:
    """Return the measures of predicted numbers, (row, output); several outputs count equally.

    With several quantiles of one target, ``truth`` holds that target once per quantile.
    """
    check_domain(float(truth.min()), criterion.domain)
    weight = np.ones(len(truth)) if sample_weight is None else sample_weight
    exposure = _exposure(truth, offset, link)
    if baseline is None:
        baseline = Baseline.of_numbers(truth, weight, offset, criterion=criterion, link=link_named(link))
    rule = baseline.predict(len(truth), offset)

    def statistics(values: Array) -> dict[str, Statistic]:
        columns = zip(truth.T, values.T, exposure.T, strict=True)
        each = [_of_numbers(criterion, *three, output=o) for o, three in enumerate(columns)]
        return {name: _average([one[name] for one in each]) for name in each[0]}

    found = _compare(statistics(predicted), statistics(rule), weight, n_resamples=n_resamples, seed=seed)
    return Quality(found, len(truth), baseline.words)


def measure_classes(
    truth: IntArray,
    predicted: Array,
    *,
    chosen: IntArray | None = None,
    baseline: Baseline | None = None,
    sample_weight: Array | None = None,
    n_resamples: int = 0,
    seed: int = 0,
) -> Quality:
    """Return the measures of predicted probabilities, (row, class); classes are given by position.

    ``chosen`` are the predicted classes: the most probable ones, unless classes have weights.
    """
    weight = np.ones(len(truth)) if sample_weight is None else sample_weight
    baseline = baseline or Baseline.of_classes(truth, weight, predicted.shape[1])
    rule = baseline.predict(len(truth), None)
    chosen = predicted.argmax(axis=1) if chosen is None else chosen
    ours, its = _of_classes(truth, predicted, chosen), _of_classes(truth, rule, rule.argmax(axis=1))
    found = _compare(ours, its, weight, n_resamples=n_resamples, seed=seed)
    return Quality(found, len(truth), baseline.words)


def _of_numbers(
    criterion: Criterion, truth: Array, predicted: Array, exposure: Array, *, output: int
) -> dict[str, Statistic]:
    """Return the measures of one output."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = predicted - truth
        root, size = formulas.root_mean_of(error**2), formulas.mean_of(np.abs(error))
    level = criterion.level_of(output)
    name, explained = _explained(criterion, truth, predicted, exposure, level=level)
    by_size: dict[str, Statistic] = {"RMSE": root, "mean absolute error": size}
    if criterion.power is not None:
        loss = formulas.mean_of(formulas.deviance(truth, predicted, criterion.power))
        first = {_DEVIANCES[criterion.loss]: loss, name: explained, "Gini": formulas.gini(truth, predicted, exposure)}
        return {**first, **by_size}
    if criterion.loss == "quantile" and level is not None:
        loss = formulas.mean_of(formulas.pinball_loss(truth, predicted, level))
        if isinstance(criterion.level, tuple):
            covered = formulas.coverage_error(truth, predicted, level)
            return {"pinball loss": loss, name: explained, "calibration error": covered}
        return {"pinball loss": loss, name: explained, "mean absolute error": size}
    if criterion.loss == "absolute":
        return {"mean absolute error": size, name: explained, "RMSE": root}
    if criterion.thresholds:
        huber = formulas.mean_of(formulas.huber_loss(truth, predicted, criterion.thresholds[output]))
        return {"Huber loss": huber, **by_size, name: explained}
    return {**by_size, name: explained}


def _explained(
    criterion: Criterion, truth: Array, predicted: Array, exposure: Array, *, level: float | None
) -> tuple[str, Statistic]:
    """Return R² or D². For a deviance, the best constant is a rate, which is multiplied by each row's exposure."""
    if criterion.power is not None:
        power = criterion.power

        def of_rate(weight: Array) -> Array:
            return formulas.deviance(truth, weight @ truth / (weight @ exposure) * exposure, power)

        return "D²", formulas.share_explained(formulas.deviance(truth, predicted, power), of_rate)
    if level is not None:
        quantile = formulas.quantile_of(truth, level)
        loss = formulas.pinball_loss(truth, predicted, level)
        return "D²", formulas.share_explained(
            loss, lambda weight: formulas.pinball_loss(truth, quantile(weight), level)
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return "R²", formulas.share_explained((predicted - truth) ** 2, formulas.squared_distance(truth))


def _of_classes(codes: IntArray, chance: Array, chosen: IntArray) -> dict[str, Statistic]:
    n_classes = chance.shape[1]
    loss = formulas.mean_of(formulas.log_loss(codes, chance))
    right = formulas.mean_of((chosen == codes).astype(np.float64))
    distance = ((np.eye(n_classes)[codes] - chance) ** 2).sum(axis=1) / (2 if n_classes == 2 else 1)
    brier = formulas.mean_of(distance)
    if n_classes > 2:
        return {"accuracy": right, "log loss": loss, "Brier score": brier}
    is_second, second = codes == 1, chance[:, 1]
    return {
        "AUC": formulas.area_under_curve(is_second, second),
        "log loss": loss,
        "average precision": formulas.average_precision(is_second, second),
        "Brier score": brier,
        "calibration error": formulas.calibration_error(is_second, second),
        "accuracy": right,
    }


def _exposure(truth: Array, offset: Array | None, link: str) -> Array:
    """Return the exposure of every row under a log link, (row, output), up to a factor."""
    if offset is None or link != "log":
        return np.ones_like(truth)
    return np.asarray(np.exp(np.broadcast_to(offset - offset.max(axis=0), truth.shape)))


def _average(each: Sequence[Statistic]) -> Statistic:
    return each[0] if len(each) == 1 else lambda weight: float(np.mean([one(weight) for one in each]))


def _compare(
    model: Mapping[str, Statistic], rule: Mapping[str, Statistic], weight: Array, *, n_resamples: int, seed: int
) -> tuple[Measure, ...]:
    """Return the measures of model and baseline that are defined on these rows."""
    values = {name: (one(weight), rule[name](weight)) for name, one in model.items()}
    defined = [name for name, pair in values.items() if np.isfinite(pair).all()]
    intervals: list[Interval | None] = [None] * len(defined)
    if n_resamples and len(weight) <= MOST_ROWS:
        intervals = _intervals([model[name] for name in defined], weight, n_resamples=n_resamples, seed=seed)
    return tuple(
        Measure(name, *values[name], _better(name), interval) for name, interval in zip(defined, intervals, strict=True)
    )


def _intervals(statistics: Sequence[Statistic], weight: Array, *, n_resamples: int, seed: int) -> list[Interval | None]:
    """Return percentile intervals."""
    drawn = resamples(weight, n_resamples=n_resamples, seed=seed)
    found = np.array([[one(each) for one in statistics] for each in drawn]).reshape(n_resamples, len(statistics))
    return [interval_of(column) for column in found.T]


def _better(name: str) -> str:
    return "higher" if name in _BETTER_HIGH else "lower"


def _pair(found: Any) -> tuple[float, float] | None:
    return None if found is None else (float(found[0]), float(found[1]))
