"""Which features make a model unsure: the curves by which intervals become wider or narrower."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.encoding.columns import Columns
from nae.encoding.schema import Feature, Number
from nae.errors import UserError
from nae.explanation.printed import digest
from nae.explanation.serial import Serial, make_frame
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel
from nae.tables.residuals import Sizes
from nae.uncertainty.levels import known_by, without_by
from nae.uncertainty.source import basis_of

__all__ = ["SCORE", "IntervalFactors", "IntervalModel", "SizeCurve", "explain_interval", "interval_model"]

SCORE = "(score)"
"""What the curve over the score is called, beside those of the features."""


@dataclass(frozen=True, eq=False)
class SizeCurve:
    """By which factor intervals are wider, at every value of a feature or of the score."""

    feature: str
    output: str
    values: tuple[str, ...]
    factor: Array  # (value,), relative to the geometric mean over the training rows
    spread: float  # the standard deviation of the factor's logarithm over the training rows

    @property
    def narrowest(self) -> str:
        """The smallest factor, and the value that has it."""
        return self._at(int(self.factor.argmin()))

    @property
    def widest(self) -> str:
        """The largest factor, and the value that has it."""
        return self._at(int(self.factor.argmax()))

    def _at(self, at: int) -> str:
        return f"{self.factor[at]:.3g} at {self.values[at]}"


@dataclass(frozen=True, eq=False)
class IntervalModel(Serial):
    """The model of the width of intervals: a factor per feature, and one of the score; all are multiplied."""

    type_name: ClassVar[str] = "interval model"

    curves: tuple[SizeCurve, ...]
    """Those that change the width of the rows' intervals the most come first."""

    def __len__(self) -> int:
        return len(self.curves)

    def __getitem__(self, feature: str) -> SizeCurve:
        """Return the curve of a feature, or of the score, ``"(score)"``; the first one if there are several outputs."""
        for curve in self.curves:
            if curve.feature == feature:
                return curve
        raise UserError(f"No curve is called {feature!r}; there are {sorted({one.feature for one in self.curves})}.")

    def __repr__(self) -> str:
        has_outputs = len({curve.output for curve in self.curves}) > 1
        columns: dict[str, Any] = {"feature": [one.feature for one in self.curves]}
        columns |= {"output": [one.output for one in self.curves]} if has_outputs else {}
        columns |= {"spread": [one.spread for one in self.curves]}
        columns |= {word: [getattr(one, word) for one in self.curves] for word in ("narrowest", "widest")}
        return digest(f"IntervalModel({counted(len(self), 'curve')})", columns, "to_frame()")

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per curve and value."""
        every = [
            (one, value, factor) for one in self.curves for value, factor in zip(one.values, one.factor, strict=True)
        ]
        return make_frame(
            {
                "feature": [one.feature for one, _, _ in every],
                "output": [one.output for one, _, _ in every],
                "value": [value for _, value, _ in every],
                "factor": [float(factor) for _, _, factor in every],
            },
            backend,
        )


@dataclass(frozen=True, eq=False)
class IntervalFactors(Serial):
    """The factors that make the intervals of rows wider or narrower."""

    type_name: ClassVar[str] = "interval factors"

    factor: Array  # (row, feature, output); the last feature is the score
    size: Array  # (row, output), the usual size of the residual: the product of the factors, and a constant
    features: tuple[str, ...]
    outputs: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.size)

    def __repr__(self) -> str:
        columns: dict[str, Any] = {"row": [str(row) for row in range(len(self))]}
        columns |= {name: values.tolist() for name, values in self.columns.items()}
        return digest(f"IntervalFactors({counted(len(self), 'row')})", columns, "to_frame()")

    @property
    def columns(self) -> dict[str, Array]:
        """The usual size and the factors by name, (row,) each."""
        found: dict[str, Array] = {}
        for o, output in enumerate(self.outputs):
            suffix = "" if len(self.outputs) == 1 else f" for {output}"
            found[f"size{suffix}"] = self.size[:, o]
            found |= {f"{name}{suffix}": self.factor[:, i, o] for i, name in enumerate(self.features)}
        return found

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per row of the table."""
        return make_frame(self.columns, backend)


def interval_model(model: TableModel) -> IntervalModel:
    """Return which features make intervals wide; see :meth:`nae.tables.answers.doubts.Doubts.interval_model`."""
    sizes, curves = _sizes_of(model), []
    for o, output in enumerate(model.outputs):
        curves += [*_feature_curves(model, sizes, o, output), _score_curve(sizes, o, output)]
    return IntervalModel(tuple(sorted(curves, key=lambda one: -one.spread)))


def explain_interval(
    model: TableModel, read: Callable[[Any], Columns], X: Any, *, offset: Any = None
) -> IntervalFactors:
    """Return what makes the intervals of rows wide; see :meth:`nae.tables.answers.doubts.Doubts.explain_interval`."""
    sizes = _sizes_of(model)
    cells = model.cells(read(without_by(X, model, known_by(model))))
    score = model.decision_function(cells, offset=offset).reshape(len(cells), -1)
    own = interpolate(sizes.size, cells).astype(np.float64)
    whole = sizes.at(cells, score)
    constant = sizes.score_size.mean(axis=0)
    of_score = whole - own.sum(axis=1) - constant
    return IntervalFactors(
        factor=np.exp(np.concatenate([own, of_score[:, None]], axis=1)),
        size=np.exp(whole),
        features=(*model.feature_names, SCORE),
        outputs=model.outputs,
    )


def _sizes_of(model: TableModel) -> Sizes:
    if model.classes:
        raise UserError("Only the intervals of numbers have a width; this model predicts classes.")
    basis_of(model, 0.9)
    if model.residuals is None or model.residuals.sizes is None:
        raise UserError("The intervals of this model have one width for all rows, so that no feature makes them wider.")
    return model.residuals.sizes


def _feature_curves(model: TableModel, sizes: Sizes, o: int, output: str) -> Iterator[SizeCurve]:
    weight = np.ones(model.schema.n_slots) if model.statistics is None else model.statistics.weight
    for i, feature in enumerate(model.schema.features):
        slots = model.schema.slots(i)
        own, share = sizes.size[slots, o].astype(np.float64), weight[slots]
        kept = np.flatnonzero(share > 0)
        spread = float(np.sqrt(np.average(own**2, weights=share))) if len(kept) else 0.0
        values = tuple(_label(feature, int(at)) for at in kept)
        yield SizeCurve(feature.name, output, values, np.exp(own[kept]), spread)


def _label(feature: Feature, at: int) -> str:
    if isinstance(feature, Number) and not feature.is_boolean and at < feature.n_values:
        return f"{feature.knots[at]:.4g}"
    return feature.labels[at]


def _score_curve(sizes: Sizes, o: int, output: str) -> SizeCurve:
    """Return the curve of the score, whose knots are quantiles of the rows' scores."""
    own = sizes.score_size[:, o].astype(np.float64)
    values = tuple(f"{knot:.4g}" for knot in sizes.score_knots[:, o])
    return SizeCurve(SCORE, output, values, np.exp(own - own.mean()), float(own.std()))
