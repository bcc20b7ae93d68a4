"""Reliability: how often what was predicted with a probability happens, with intervals, and the calibration error."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._printed import digest
from nae._serial import Serial, make_frame
from nae._typing import Array, IntArray
from nae._words import counted
from nae.errors import ConfigError, UserError, did_you_mean
from nae.quality.chance import chi_square_tail
from nae.quality.rows import read_rows
from nae.quality.slopes import fit_slope, slope_errors

__all__ = ["Reliability", "reliability"]

_Z = 1.96  # of a normal variable, 95 % lie within so many standard deviations
_LEVEL = 0.05
_LEAST = 1e-12  # the smallest probability that has log-odds here


@dataclass(frozen=True, eq=False)
class Reliability(Serial):
    """The reliability curve of the probabilities of one class: bins of equal numbers of rows.

    Attributes
    ----------
    label
        The class; empty for the probability of whichever class is the most probable.
    predicted, actual
        The mean probability and the share of the class, per bin.
    lower, upper
        The ends of Wilson's 95 % interval of the share, per bin.
    rows
        The number of rows per bin.
    error, error_by_chance
        The calibration error, the mean distance of predicted and actual over the bins, and the one expected if all
        probabilities were true.
    p_value
        The probability of distances at least as large if all probabilities were true.
    slope, shift
        The log-odds are calibrated best as ``slope * log-odds + shift``; a slope below 1 means probabilities that are
        too extreme.
    slope_interval, shift_interval
        Their 95 % intervals.
    """

    type_name: ClassVar[str] = "reliability"

    label: str
    n_rows: int
    predicted: Array
    actual: Array
    lower: Array
    upper: Array
    rows: IntArray
    error: float
    error_by_chance: float
    p_value: float
    slope: float
    slope_interval: tuple[float, ...]
    shift: float
    shift_interval: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.predicted)

    def __repr__(self) -> str:
        title = f"Reliability({self.what}, {counted(self.n_rows, 'row')}, calibration error {self.error:.4g})"
        columns = {name: values.tolist() for name, values in self._columns.items()}
        return digest(title, columns | {"rows": [f"{n:,}" for n in self.rows]}, "to_frame()")

    @property
    def what(self) -> str:
        """What the probabilities are about, in words."""
        return f"probability of {self.label!r}" if self.label else "probability of the chosen class"

    @property
    def is_calibrated(self) -> bool:
        """Whether the distances can be explained by chance."""
        return self.p_value > _LEVEL

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        error = f"Calibration error {self.error:.3g} ({self.error_by_chance:.2g} by chance alone)"
        if self.is_calibrated:
            return f"{error}: as far as {counted(self.n_rows, 'row')} can tell, the {self.what} is calibrated."
        return f"{error}: the {self.what} is {self._how}."

    @property
    def _how(self) -> str:
        """In which way the probabilities are wrong."""
        low, high = self.slope_interval
        slope = f"slope {self.slope:.2f} ({low:.2f} to {high:.2f})"
        gap = float(self.rows @ (self.predicted - self.actual)) / float(self.rows.sum())
        if high < 1:
            return f"too extreme, {slope}"
        if low > 1:
            return f"too cautious, {slope}"
        if self.shift_interval[0] * self.shift_interval[1] > 0:
            return f"too {'high' if gap > 0 else 'low'} by {abs(gap):.2g} in the mean"
        return "not calibrated"

    @property
    def _columns(self) -> dict[str, Array]:
        names = ("predicted", "actual", "lower", "upper", "rows")
        return {name: getattr(self, name) for name in names}

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per bin."""
        return make_frame(self._columns, backend)


def reliability(
    model: Any,
    X: Any,
    y: Any,
    *,
    label: Any = None,
    n_bins: int = 10,
    sample_weight: Any = None,
    offset: Any = None,
) -> Reliability:
    """Return how often a class happens among rows with similar probabilities of it.

    Parameters
    ----------
    model
        A fitted classifier, or a model of classes from ``nae.load``.
    X, y
        The rows and their truth: rows that the model was not trained on.
    label
        The class. If None, the second of two classes; of several, whichever is the most probable in a row.
    n_bins
        Number of bins; rows are divided into bins of equal size in the order of their probabilities.
    sample_weight, offset
        As in :func:`nae.quality.measure`.

    Examples
    --------
    >>> import numpy as np
    >>> from nae import NAEClassifier, quality
    >>> X = np.random.default_rng(0).uniform(size=(300, 1))
    >>> model = NAEClassifier(random_state=0, n_members=1, max_epochs=3).fit(X, X[:, 0] > 0.5)
    >>> len(quality.reliability(model, X, X[:, 0] > 0.5, n_bins=5))
    5
    """
    if n_bins < 1:
        raise ConfigError(f"n_bins must be at least 1; got {n_bins}.")
    rows = read_rows(model, X, y, sample_weight, offset)
    classes = rows.model.classes
    if not classes:
        raise UserError("Reliability is about probabilities; this model predicts numbers. Use by_group.")
    at = _position(classes, label)
    chance = rows.predict()
    if at is None:
        chosen = chance.argmax(axis=1)
        return _curve("", chance.max(axis=1), (chosen == rows.codes).astype(np.float64), rows.weight, n_bins)
    return _curve(classes[at], chance[:, at], (rows.codes == at).astype(np.float64), rows.weight, n_bins)


def _position(classes: tuple[str, ...], label: Any) -> int | None:
    if label is None:
        return 1 if len(classes) == 2 else None
    if str(label) not in classes:
        near = did_you_mean(str(label), classes, is_listed=True)
        raise ConfigError(f"label must be one of the classes {list(classes)}; got {label!r}.{near}")
    return classes.index(str(label))


def _curve(label: str, chance: Array, truth: Array, weight: Array, n_bins: int) -> Reliability:
    place = _bins(chance, n_bins)

    def sums(values: Array) -> Array:
        return np.bincount(place, values).astype(np.float64)

    total, squares = sums(weight), sums(weight**2)
    predicted, actual = sums(weight * chance) / total, sums(weight * truth) / total
    noise = np.sqrt(sums(weight**2 * chance * (1 - chance))) / total  # of the actual share, if probabilities are true
    share = total / total.sum()
    lower, upper = _wilson(actual, total**2 / squares)
    slope, shift, errors = _slope(chance, truth, weight)
    return Reliability(
        label=label,
        n_rows=len(chance),
        predicted=predicted,
        actual=actual,
        lower=lower,
        upper=upper,
        rows=np.bincount(place),
        error=float(share @ np.abs(predicted - actual)),
        error_by_chance=float(share @ noise * np.sqrt(2 / np.pi)),
        p_value=chi_square_tail(float((((actual - predicted) / np.maximum(noise, 1e-12)) ** 2).sum()), len(total)),
        slope=slope,
        slope_interval=(slope - _Z * errors[0], slope + _Z * errors[0]),
        shift=shift,
        shift_interval=(shift - _Z * errors[1], shift + _Z * errors[1]),
    )


def _slope(chance: Array, truth: Array, weight: Array) -> tuple[float, float, tuple[float, float]]:
    kept = np.clip(chance, _LEAST, 1 - _LEAST)
    score, rows = np.log(kept) - np.log1p(-kept), weight * (weight.sum() / float(weight @ weight))
    slope, shift = fit_slope(score, truth, rows)
    return slope, shift, slope_errors(score, rows, slope, shift)


def _bins(chance: Array, n_bins: int) -> IntArray:
    """Return the bin of every row; rows with equal probabilities share a bin."""
    edges = np.unique(np.quantile(chance, np.linspace(0, 1, n_bins + 1)[1:-1], method="inverted_cdf"))
    return np.unique(np.searchsorted(edges, chance, side="left"), return_inverse=True)[1].ravel()


def _wilson(share: Array, n_rows: Array) -> tuple[Array, Array]:
    """Return the ends of Wilson's interval of a share."""
    scale = 1 + _Z**2 / n_rows
    middle = (share + _Z**2 / (2 * n_rows)) / scale
    half = _Z / scale * np.sqrt(share * (1 - share) / n_rows + _Z**2 / (4 * n_rows**2))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
