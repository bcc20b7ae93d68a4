"""The layouts of the dial's frontier, training curves, and two models compared."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array
from nae.errors import UserError
from nae.explanation.outputs import pick_output
from nae.explanation.shapes import GlobalExplanation
from nae.plots.layouts.shape import ShapeLayout, lay_out_shape

__all__ = [
    "CompareLayout",
    "FrontierLayout",
    "FrontierPoint",
    "TrainingLayout",
    "lay_out_compare",
    "lay_out_frontier",
    "lay_out_training",
]


@dataclass(frozen=True)
class FrontierPoint:
    """A model with its additivity and its score."""

    additivity: float
    score: float
    error: float = 0.0  # the standard error of the score
    label: str = ""
    is_chosen: bool = False
    series: str = ""
    is_beaten: bool = False  # whether another point has a better score and more additivity; drawn off the line


@dataclass(frozen=True, eq=False)
class FrontierLayout:
    """Score against additivity, one line per series."""

    series: tuple[tuple[str, tuple[FrontierPoint, ...]], ...]
    beaten: tuple[FrontierPoint, ...]
    x_label: str
    y_label: str
    note: str


@dataclass(frozen=True, eq=False)
class TrainingLayout:
    """The course of a training by epoch."""

    epochs: Array
    loss: Array
    validation: Array  # NaN for epochs without validation
    additivity: Array  # NaN for epochs in which it was not measured
    best_epoch: int
    note: str


@dataclass(frozen=True, eq=False)
class CompareLayout:
    """The same feature in two models, with one scale."""

    first: ShapeLayout
    second: ShapeLayout
    names: tuple[str, str]
    importances: tuple[float, float]
    y_range: tuple[float, float]


def lay_out_frontier(
    points: Iterable[Any],
    *,
    score_label: str | None = None,
    additivity_label: str | None = None,
    is_lower_better: bool = True,
) -> FrontierLayout:
    """Return the frontier of points: :class:`FrontierPoint`, or those of an estimator's ``additivity_path_``.

    A point is any object with ``additivity`` and either ``score`` or ``validation``.
    """
    given = list(points)
    found = [_as_point(point) for point in given]
    if not found:
        raise UserError("A frontier needs at least one point; got none.")
    names = list(dict.fromkeys(point.series for point in found))
    series = tuple(
        (name, tuple(sorted((p for p in found if p.series == name and not p.is_beaten), key=lambda p: p.additivity)))
        for name in names
    )
    beaten = tuple(point for point in found if point.is_beaten)
    better = "lower" if is_lower_better else "higher"
    if score_label is None:
        score_label = "score" if hasattr(given[0], "score") else "validation loss"
    if additivity_label is None:  # points of the dial's path have the dial's additivity
        additivity_label = "additivity, mean over features" if hasattr(given[0], "target") else "additivity"
    note = f"{better} is better · 1 is a sum of single effects"
    return FrontierLayout(series, beaten, additivity_label, score_label, note)


def _as_point(point: Any) -> FrontierPoint:
    if isinstance(point, FrontierPoint):
        return point
    label = getattr(point, "label", None)
    target = getattr(point, "target", None)
    if label is None:
        label = f"asked for {target:g}" if target is not None else "flexible" if hasattr(point, "target") else ""
    return FrontierPoint(
        additivity=float(point.additivity),
        score=float(point.score if hasattr(point, "score") else point.validation),
        error=float(getattr(point, "error", None) or getattr(point, "standard_error", None) or 0.0),
        label=label,
        is_chosen=bool(getattr(point, "is_chosen", False)),
        series=str(getattr(point, "series", "")),
        is_beaten=bool(getattr(point, "is_beaten", False)),
    )


def lay_out_training(history: Any) -> TrainingLayout:
    """Return the curves of a :class:`~nae.training.History`, or of its ``to_dict()``."""
    if isinstance(history, dict):
        epochs, best, stopped = history["epochs"], history["best_epoch"], history["stopped"]
    else:
        epochs, best, stopped = list(history), history.best_epoch, history.stopped
    if not epochs:
        raise UserError("Training curves need at least one epoch; got none.")

    def column(name: str) -> Array:
        found = [epoch[name] if isinstance(epoch, dict) else getattr(epoch, name) for epoch in epochs]
        return np.array([np.nan if value is None else value for value in found], dtype=np.float64)

    seconds = float(column("seconds")[-1])  # since the start
    return TrainingLayout(
        epochs=column("epoch"),
        loss=column("loss"),
        validation=column("validation"),
        additivity=column("additivity"),
        best_epoch=int(best),
        note=f"{stopped} · best epoch {best} of {len(epochs)} · {seconds:.3g} s",
    )


def lay_out_compare(
    first: GlobalExplanation,
    second: GlobalExplanation,
    *,
    features: Sequence[str] | None = None,
    output: str | int | None = None,
    unit: str | None = None,
    names: tuple[str, str] = ("first", "second"),
    max_levels: int = 12,
) -> tuple[CompareLayout, ...]:
    """Return the features that both models have, sorted by the larger of their importances."""
    o = pick_output(first.outputs, output)
    if first.outputs != second.outputs:
        raise UserError(f"Two models are compared on the same outputs; got {first.outputs} and {second.outputs}.")
    shared = [name for name in first.feature_names if name in second.feature_names]
    if not shared:
        raise UserError("Two models are compared on the features they share; these share none.")
    size = {n: max(float(first.feature(n).importance[o]), float(second.feature(n).importance[o])) for n in shared}
    chosen = features or sorted(shared, key=lambda name: -size[name])
    found = []
    for name in chosen:
        one = lay_out_shape(first, name, output=o, unit=unit, max_levels=max_levels)
        two = lay_out_shape(second, name, output=o, unit=unit, max_levels=max_levels)
        found.append((one, two, (float(first.feature(name).importance[o]), float(second.feature(name).importance[o]))))
    low = min(min(one.y_range[0], two.y_range[0]) for one, two, _ in found)
    high = max(max(one.y_range[1], two.y_range[1]) for one, two, _ in found)
    return tuple(CompareLayout(one, two, names, sizes, (low, high)) for one, two, sizes in found)
