"""Read the target of a fit from a table in memory, from a scan, or from an evaluation set."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from nae._typing import AnyArray, Array
from nae._warnings import warn
from nae.encoding import Columns
from nae.encoding.beside import read_offset
from nae.encoding.target import (
    LARGEST,
    TargetMoments,
    check_domain,
    read_classes,
    read_numbers,
    robust_scale,
    to_array,
    weighted_quantiles,
)
from nae.errors import ConfigError, DataError, did_you_mean
from nae.estimators.rows import Rows, Task
from nae.parameters import ClassParameters, NumberParameters
from nae.training.assemble import Scale
from nae.training.losses import ROBUST, Loss, make_loss

if TYPE_CHECKING:
    from nae.scanning.chunks import Roles
    from nae.scanning.survey import Survey

__all__ = ["ClassTarget", "NumberTarget", "Target"]

_OPTIONS = {"quantile": "quantile", "huber": "huber_delta", "tweedie": "tweedie_power"}  # by loss, its parameter
_LEVELS = (1e-8, 1e30)  # of targets whose loss is a count or an amount: single precision and the start hold these
_GROWS_WITH_Y, _SMALL = ("poisson", "tweedie"), 1e-3  # their losses, and so their gradients, shrink with y
_LEAST = 1e-150  # squares of smaller numbers are not held exactly, or are zero
_ROUNDING = (
    4 * np.finfo(np.float64).eps
)  # relative rounding error of a difference; less spread than this counts as none


class Target(ABC):
    """The kind of target of an estimator, and how to read it; abstract."""

    has_classes: ClassVar[bool]

    @property
    def needs_values(self) -> bool:
        """Whether a scan must sketch the target's distribution, not only its moments."""
        return False

    @abstractmethod
    def read(self, columns: Columns, y: Any, weight: Array, offset: Any) -> tuple[Rows, Task]:
        """Return the rows, and the task that those of positive weight define."""

    @abstractmethod
    def read_again(self, y: Any, task: Task) -> AnyArray:
        """Return the target of an evaluation set, checked against the training target."""

    @abstractmethod
    def read_survey(self, survey: "Survey", roles: "Roles") -> Task:
        """Return the task that a surveyed scan defines."""


@dataclass(frozen=True, eq=False)
class NumberTarget(Target):
    """The target of a regression: one number per row, or several."""

    given: NumberParameters
    has_classes = False

    @property
    def needs_values(self) -> bool:
        return self.given.loss in ROBUST

    def read(self, columns: Columns, y: Any, weight: Array, offset: Any) -> tuple[Rows, Task]:
        loss = self._loss()
        target = read_numbers(y, domain=loss.domain, is_used=weight > 0, features=columns.names)
        values = target.values
        if loss.levels and values.shape[1] > 1:
            raise DataError(
                f"y must be one column with several quantiles; got {values.shape[1]}. Fit one model per target."
            )
        shift = read_offset(offset, *values.shape)
        rows = Rows(columns, values, weight, shift)
        base = np.zeros_like(values) if shift is None else shift
        kept = weight > 0
        moments = TargetMoments.of(values[kept], base[kept], weight[kept])
        scale = _scale(moments, loss)
        if loss.name in ROBUST:
            rest = (values[kept] - base[kept]).T
            return rows, _robust_task(loss, scale, target.names, [(column, weight[kept]) for column in rest])
        return rows, Task(loss, scale, target.names)

    def read_again(self, y: Any, task: Task) -> AnyArray:
        values = read_numbers(y, domain=task.loss.domain).values
        if values.shape[1] != task.n_targets:
            raise DataError(f"eval_set must have the {task.n_targets} targets of y; got {values.shape[1]}.")
        return values

    def read_survey(self, survey: "Survey", roles: "Roles") -> Task:
        loss = self._loss()
        if loss.levels and len(roles.target) > 1:
            raise DataError(f"y must name one column with several quantiles; got {list(roles.target)}.")
        check_domain(survey.least, loss.domain)
        if survey.target is None:
            raise DataError("A regression needs a target of numbers; the scan has none.")
        scale = _scale(survey.target, loss)
        if loss.name in ROBUST:
            return _robust_task(loss, scale, roles.target, [one.distribution() for one in survey.target_values])
        return Task(loss, scale, roles.target)

    def _loss(self) -> Loss:
        given = self.given
        for owner, name in _OPTIONS.items():
            value = getattr(given, name)
            if given.loss != owner and value != getattr(NumberParameters, name):
                warn(f"{name}={value!r} has no effect with loss={given.loss!r}; it belongs to loss={owner!r}.")
        return make_loss(given.loss, quantile=given.quantile, power=given.tweedie_power, delta=given.huber_delta)


@dataclass(frozen=True, eq=False)
class ClassTarget(Target):
    """The target of a classification: one class per row, of two or more."""

    given: ClassParameters
    has_classes = True

    def read(self, columns: Columns, y: Any, weight: Array, offset: Any) -> tuple[Rows, Task]:
        labels = to_array(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = column_or_1d(labels, warn=True)
        is_kept = weight > 0
        found = read_classes(labels[is_kept])
        _check_discrete(labels[is_kept])
        codes = np.zeros(len(labels), dtype=np.int64)
        codes[is_kept] = found.codes
        each = self._weights(found.classes, np.bincount(codes, weight).astype(np.float64))
        count, weight = weight, weight * each[codes]
        task = self._task(found.classes, np.bincount(codes, weight) / weight.sum(), each)
        n_outputs = len(task.outputs)
        shift = task.read_offset(offset, len(labels))
        return Rows(columns, codes[:, None] if n_outputs == 1 else codes, weight, shift, count=count), task

    def read_again(self, y: Any, task: Task) -> AnyArray:
        known = [] if task.labels is None else task.labels.tolist()
        code_of = {label: code for code, label in enumerate(known)}
        labels = to_array(y).ravel().tolist()
        unknown = [label for label in labels if label not in code_of]
        if unknown:
            raise DataError(
                f"eval_set must hold only the training classes; got {unknown[0]!r}, the classes are {list(code_of)}."
            )
        codes = np.array([code_of[label] for label in labels], dtype=np.int64)
        return codes[:, None] if len(code_of) == 2 else codes

    def read_survey(self, survey: "Survey", roles: "Roles") -> Task:
        if len(roles.target) != 1:
            raise DataError(f"y must name one column of classes; got {list(roles.target)}.")
        _check_discrete(survey.classes)
        each = self._weights(survey.classes, survey.class_weight)
        total = survey.class_weight * each
        return self._task(survey.classes, total / total.sum(), each)

    def _task(self, labels: AnyArray, prior: Array, each: Array) -> Task:
        """Return the task of a classification. The score starts at the shares of the classes."""
        names = tuple(str(label) for label in labels.tolist())
        if len(names) > 2 and self.given.positive_class is not None:
            raise ConfigError(
                f"positive_class is for two classes; y has {len(names)}, each with a score of its own. Leave it out."
            )
        if len(names) == 2:
            centre = np.array([np.log(prior[1]) - np.log(prior[0])])
            scale = Scale(centre, np.ones(1))
            found = Task(make_loss("logistic"), scale, (names[1],), names, labels, each, self._positive(labels))
        else:
            centre = np.log(prior) - np.log(prior).mean()
            found = Task(make_loss("cross-entropy"), Scale(centre, np.ones(len(names))), names, names, labels, each)
        return replace(found, calibrate=self._calibrate())

    def _calibrate(self) -> bool | Literal["auto"]:
        """Return whether the score is calibrated."""
        given = self.given.calibrate
        if isinstance(given, (bool, np.bool_)):
            return bool(given)
        if isinstance(given, str) and given == "auto":
            return "auto"
        raise ConfigError(f"calibrate must be False, True or 'auto'; got {given!r}.")

    def _positive(self, classes: AnyArray) -> str:
        """Return the name of the class, of two, that the model shall speak for."""
        given, labels = self.given.positive_class, classes.tolist()
        found = [str(label) for label in labels if label == given or str(label) == str(given)]
        if given is not None and not found:
            raise ConfigError(
                f"positive_class must be one of the classes {labels}; got {given!r}."
                f"{did_you_mean(str(given), map(str, labels), is_listed=True)}"
            )
        return str(labels[1]) if given is None else found[0]

    def _weights(self, classes: AnyArray, totals: Array) -> Array:
        """Return one weight per class; 'balanced' gives all classes the same total weight."""
        given, labels = self.given.class_weight, classes.tolist()
        if given is None:
            return np.ones(len(labels))
        if isinstance(given, Mapping):
            unknown = [label for label in given if label not in labels]
            if unknown:
                raise ConfigError(
                    f"class_weight names the class {unknown[0]!r}, which y does not have; the classes are {labels}."
                )
            found = np.array([given.get(label, 1.0) for label in labels], dtype=np.float64)
            if not ((found >= 1 / LARGEST) & (found <= LARGEST)).all():
                raise ConfigError(
                    f"class_weight must hold positive numbers, from {1 / LARGEST:g} to {LARGEST:g}; "
                    f"got {dict(given)!r}."
                )
            return found
        if given != "balanced":
            raise ConfigError(f"class_weight must be a dict, 'balanced' or None; got {given!r}.")
        return np.asarray(totals.sum() / (len(labels) * totals))


def _check_discrete(labels: AnyArray) -> None:
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise DataError(f"{error} For numbers, use NAERegressor.") from None


def _scale(moments: TargetMoments, loss: Loss) -> Scale:
    """Return the centre and the spread of the score. The spread is 0 if the target is constant."""
    spread = np.sqrt(moments.variance)
    is_constant = spread <= _ROUNDING * moments.size
    if loss.is_scaled:
        if ((moments.size > 0) & (moments.size < _LEAST)).any():
            raise DataError(
                f"y must be 0 in all rows, or have a mean size of at least {_LEAST:g}; got {moments.size.min():g}. "
                "Multiply y by a constant."
            )
        return Scale(moments.mean, np.where(is_constant, 0.0, spread), moments.base)
    low, high = _LEVELS
    if ((moments.level > 0) & ((moments.level < low) | (moments.level > high))).any():
        raise DataError(
            f"With this loss, the mean of y must be 0, or lie in [{low:g}, {high:g}]; got {moments.level.max():g}. "
            "Multiply y by a constant."
        )
    if loss.name in _GROWS_WITH_Y and 0 < moments.level.min() < _SMALL:
        warn(
            f"The mean of y is {moments.level.min():.3g}; with loss={loss.name!r}, numbers below {_SMALL:g} are "
            "learned slowly or not at all. Multiply y by a constant, and divide the predictions by it."
        )
    # With a log link, a constant prediction needs a constant offset, too, whose mean is then that of its exponentials.
    is_constant &= np.isclose(moments.log_exposure, moments.level - moments.mean)
    return Scale(np.log(np.maximum(moments.level, 1e-12)) - moments.log_exposure, np.where(is_constant, 0.0, 1.0))


def _robust_task(loss: Loss, scale: Scale, names: tuple[str, ...], targets: Sequence[tuple[Array, Array]]) -> Task:
    """Return the task of a robust loss; ``targets`` are values with their weights.

    Several quantiles of a target are outputs with the same scale, named ``q0.05`` and so on. They start at the
    quantiles of its values.
    """
    scale = _robust(scale, [robust_scale(*target) for target in targets])
    if not loss.levels:
        return Task(loss, scale, names)
    begin = (weighted_quantiles(*targets[0], loss.levels) - scale.centre) / scale.unit
    same = Scale(*(np.repeat(one, len(loss.levels)) for one in (scale.centre, scale.spread, scale.base)))
    return Task(loss, same, tuple(f"q{level:g}" for level in loss.levels), begin=begin)


def _robust(scale: Scale, found: Sequence[tuple[float, float]]) -> Scale:
    """Return a scale of medians and robust spreads. Where the robust spread is 0, the original spread is kept."""
    centre, spread = np.array(found).T
    return Scale(
        np.where(scale.spread > 0, centre, scale.centre),
        np.where((scale.spread > 0) & (spread > 0), spread, scale.spread),
        scale.base,
    )
