"""The layouts of importance bars and of a waterfall."""

from dataclasses import dataclass

import numpy as np

from nae._typing import IntArray
from nae.errors import UserError
from nae.explanation.local import LocalExplanation, in_points
from nae.explanation.outputs import pick_output, score_label
from nae.explanation.shapes import GlobalExplanation
from nae.links import link_named
from nae.plots.style import (
    decimals_for,
    format_fixed,
    format_number,
    format_signed,
    format_value,
)

__all__ = [
    "ImportanceBar",
    "ImportanceLayout",
    "Part",
    "Step",
    "WaterfallLayout",
    "lay_out_importance",
    "lay_out_waterfall",
]


_LANE = 0.16  # distance from the middle of a step to the middle of a lane


@dataclass(frozen=True)
class ImportanceBar:
    """One feature: how much its contribution varies, and which part of that its own value explains."""

    name: str
    importance: float
    own: float  # the part of the bar that its own value explains
    additivity: float
    stability: float | None
    is_noise: bool = False


@dataclass(frozen=True)
class ImportanceLayout:
    """Importance bars, the largest first."""

    bars: tuple[ImportanceBar, ...]
    rest: tuple[int, float]  # the number of features not shown, and their largest importance
    label: str
    note: str

    @property
    def has_context(self) -> bool:
        """Whether context changes any of the contributions shown."""
        longest = max((bar.importance for bar in self.bars), default=0.0)
        return any(bar.importance - bar.own > 1e-6 * longest for bar in self.bars)


def lay_out_importance(
    explanation: GlobalExplanation,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    max_features: int = 20,
) -> ImportanceLayout:
    """Return the importance of the features, over all outputs or of one."""
    o = None if output is None and len(explanation.outputs) > 1 else pick_output(explanation.outputs, output)
    bars = []
    for shape in explanation.ranked(o):
        variance = shape.importance**2 if o is None else shape.importance[[o]] ** 2
        own = variance * (shape.additivity if o is None else shape.additivity[[o]])
        size = float(np.sqrt(variance.mean()))
        additivity = float(own.sum() / variance.sum()) if variance.sum() > 0 else 1.0
        stability = None
        if shape.stability is not None:
            stability = float(shape.stability.mean() if o is None else shape.stability[o])
        bars.append(ImportanceBar(shape.name, size, size * additivity, additivity, stability, shape.is_noise))
    hidden = bars[max_features:]
    parts = [
        f"weighted additivity {explanation.additivity_weighted:.2f}",
        f"interaction share {explanation.interaction_share:.2f}",
        f"cancellation {explanation.cancellation:.2f}",
    ]
    if explanation.stability is not None:
        parts.append(f"stability {explanation.stability:.2f}")
    return ImportanceLayout(
        bars=tuple(bars[:max_features]),
        rest=(len(hidden), max((bar.importance for bar in hidden), default=0.0)),
        label=f"standard deviation of the contribution to {score_label(explanation, o, unit)}",
        note=" · ".join(parts),
    )


@dataclass(frozen=True)
class Part:
    """A bar of a step: the own effect in the upper lane, or the context shift in the lower lane."""

    start: float
    end: float
    middle: float  # distance of the lane below the middle of the step; steps are 1 apart
    height: float
    is_context: bool


@dataclass(frozen=True)
class Step:
    """One contribution, as a step from the intercept to the score."""

    label: str  # 'Latitude = 37.9'
    start: float
    end: float
    own_end: float  # the end of the step if the feature had its own effect alone
    lower: float  # the lowest and highest possible end of the step
    upper: float
    contribution: str  # in words: '+0.83'
    own: str
    shift: str
    cause: str  # the feature with the largest part of the shift, and that part
    is_rest: bool


@dataclass(frozen=True)
class WaterfallLayout:
    """The steps of a row from the intercept, plus the offset if there is one, to the score."""

    steps: tuple[Step, ...]
    base: float  # where the steps start; its name follows
    base_name: str
    score: float  # where they end
    score_name: str
    decimals: int
    title: str
    label: str
    note: str
    x_range: tuple[float, float]

    @property
    def has_context(self) -> bool:
        """Whether context changed any contribution by a visible amount."""
        return any(round(step.end - step.own_end, self.decimals) for step in self.steps)

    @property
    def has_bounds(self) -> bool:
        """Whether any contribution could have been different in another context."""
        return any(round(step.upper - step.lower, self.decimals) for step in self.steps)

    def parts(self, step: Step) -> tuple[Part, ...]:
        """Return the bars of a step, in two lanes so that neither hides the other, or one bar without context."""
        if not self.has_context:
            return (Part(step.start, step.end, 0.0, 0.52, is_context=False),)
        own = Part(step.start, step.own_end, -_LANE, 0.26, is_context=False)
        return own, Part(step.own_end, step.end, _LANE, 0.26, is_context=True)


def lay_out_waterfall(
    explanation: LocalExplanation,
    row: int = 0,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    max_features: int = 10,
) -> WaterfallLayout:
    """Return the waterfall of one row. With several classes, the default ``output`` is the predicted class."""
    if not -len(explanation) <= row < len(explanation):
        raise UserError(f"row must be in [0, {len(explanation) - 1}]; got {row}.")
    one = in_points(explanation[row])
    score = one.score[0]
    is_predicted = output is None and explanation.link == "softmax"
    o = int(score.argmax()) if is_predicted else pick_output(explanation.outputs, output)
    values = one.values[0, :, o]
    order = np.argsort(-np.abs(values), kind="stable")
    if len(order) > max_features:
        order = order[: max_features - 1]
    others = np.setdiff1d(np.arange(len(values)), order)
    groups = [np.array([i]) for i in order] + ([others] if len(others) else [])
    starts = np.cumsum([float(one.base[0, o]), *(float(values[group].sum()) for group in groups)])
    ends = [float(starts[0]), float(score[o])]
    for group, start in zip(groups, starts, strict=False):
        ends += [start + float(bound[0, group, o].sum()) for bound in (one.lower, one.upper, one.own)]
    decimals = decimals_for(max(ends) - min(ends))
    steps = tuple(
        _step(one, group, o, float(start), decimals=decimals) for group, start in zip(groups, starts, strict=False)
    )
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    return WaterfallLayout(
        steps=steps,
        base=float(starts[0]),
        base_name=one.base_name if one.offset is None else f"{one.base_name} and offset",
        score=float(score[o]),
        score_name="score" if one.unit == "score" else "prediction",
        decimals=decimals,
        title=_title(explanation[row], o, decimals),
        label=score_label(explanation, o, unit),
        note=_note(explanation, order, o),
        x_range=(min(ends) - room, max(ends) + room),
    )


def _step(one: LocalExplanation, group: IntArray, o: int, start: float, *, decimals: int) -> Step:
    """Return the step of one feature, or of several together."""
    value, own = float(one.values[0, group, o].sum()), float(one.own[0, group, o].sum())
    is_rest = len(group) > 1
    label, cause = f"{len(group)} other features", ""
    if not is_rest:
        i = int(group[0])
        label = f"{one.feature_names[i]} = {format_value(one.columns[i][0])}"
        cause = _cause(one, i, o, value - own, decimals=decimals)
    return Step(
        label=label,
        start=start,
        end=start + value,
        own_end=start + own,
        lower=start + float(one.lower[0, group, o].sum()),
        upper=start + float(one.upper[0, group, o].sum()),
        contribution=format_signed(value, decimals),
        own=format_signed(own, decimals),
        shift=format_signed(value - own, decimals),
        cause=cause,
        is_rest=is_rest,
    )


def _cause(one: LocalExplanation, i: int, o: int, shift: float, *, decimals: int) -> str:
    """Return the feature with the largest part of a shift; an empty text if either is invisibly small."""
    parts = one.parts[0, i, o]
    if not len(parts) or round(shift, decimals) == 0:
        return ""
    at = int(np.argmax(parts * np.sign(shift)))  # other features may have larger parts against the shift
    part = float(parts[at])
    if part * shift <= 0 or round(part, decimals) == 0:
        return ""
    return f"{one.feature_names[int(one.causes[0, i, o, at])]} {format_signed(part, decimals)}"


def _title(explanation: LocalExplanation, o: int, decimals: int) -> str:
    prediction = float(explanation.prediction[0, o])
    name = explanation.outputs[o]
    if explanation.link in ("logit", "softmax"):
        said = f"probability of {name}: {_percent(prediction)}"
    else:
        is_score = explanation.link == "identity"
        said = f"prediction: {format_fixed(prediction, decimals) if is_score else format_number(prediction)}"
        said = said if name == "score" else f"{name}, {said}"
    if explanation.target is not None:
        truth = explanation.target[0]
        truth = truth[o] if np.ndim(truth) else truth
        has_decimals = isinstance(truth, (float, np.floating)) and not float(truth).is_integer()
        is_fixed = explanation.link == "identity" and has_decimals  # use the decimals of the prediction
        said += f" · actual: {format_fixed(float(truth), decimals) if is_fixed else format_value(truth)}"
    return said


def _note(explanation: LocalExplanation, order: IntArray, o: int) -> str:
    base = explanation.intercept
    if explanation.unit == "score":
        base = link_named(explanation.link).inverse(base)
    average = float(base[o]) if np.ndim(base) else float(base)
    shown = _percent(average) if explanation.link in ("logit", "softmax") else format_number(average)
    parts = [f"{'intercept alone' if explanation.unit == 'score' else 'average row'}: {shown}"]
    if explanation.stability is not None:
        parts.append(f"stability of the attributions shown: {float(explanation.stability[order, o].mean()):.2f}")
    return " · ".join(parts)


def _percent(share: float) -> str:
    if 0.001 <= share <= 0.999:
        return f"{100 * share:.3g} %"
    return "< 0.1 %" if share < 0.5 else "> 99.9 %"
