"""The global explanation: the effect of each feature at each value, computed from the tables and statistics."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array, IntArray
from nae._words import counted
from nae.encoding.cells import Cells
from nae.encoding.schema import OTHER, Category, Feature
from nae.errors import UserError, did_you_mean
from nae.explanation.interpret import InterpretView
from nae.explanation.own import additive_share, weighted_share
from nae.explanation.printed import digest
from nae.explanation.reference import MeanGate, require_statistics
from nae.explanation.serial import Column, Serial, make_frame
from nae.tables.evidence import check_coverage
from nae.tables.model import TableModel
from nae.tables.statistics import QUANTILES

__all__ = ["NOISE", "FeatureShape", "GlobalExplanation", "explain_global", "value_order"]

NOISE = "cannot be told from noise"
NOISE_LEVEL = 0.05  # the share of features without any effect that are taken for more than noise, at most
_MOST_DOTS = 1000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, eq=False)
class FeatureShape:
    """The effect of one feature at each of its values. *Missing* and *unseen* are the last two values.

    Arrays over values have shape (value, output), numbers per feature (output,).
    """

    name: str
    kind: str  # 'number', 'boolean' or 'category'
    labels: tuple[str, ...]  # one text per value
    roles: tuple[str, ...]  # 'value', 'other', 'missing' or 'unseen'
    numbers: Array  # (value,), NaN where the value is no number
    weight: Array  # (value,), share of the rows
    mean: Array  # the mean contribution at the value
    lower: Array  # the smallest possible contribution there, whatever the other features are
    upper: Array  # the largest possible contribution
    quantiles: Array  # (quantile, value, output), quantiles of the actual contributions
    member_spread: Array  # (value, output), standard deviation of the effect over the members
    importance: Array  # (output,), standard deviation of the contribution over the rows
    additivity: Array  # (output,), share of the contribution's variance that the value itself explains
    interaction_share: Array  # (output,), variance of its context shift over that of the score
    stability: Array | None  # (output,), agreement of the members; None for a single one
    dots_at: Array | None  # (dot,), the number, or the position among the values of a category; NaN for missing
    dots: Array | None  # (dot, output), actual contributions of rows
    effect_lower: Array | None = None  # (value, output), where the true effect lies at the explanation's coverage
    effect_upper: Array | None = None  # NaN where no row says anything; None without evidence
    chance: Array | None = None  # (output,), of rows like the training rows if the feature had nothing to say

    @property
    def is_noise(self) -> bool:
        """Whether the feature cannot be told from noise, at a level of 5 % over all outputs. False if it is unknown."""
        return self.chance is not None and float(self.chance.min()) * len(self.chance) > NOISE_LEVEL

    @property
    def is_number(self) -> bool:
        """Whether the values lie on a line: a number that is not a boolean."""
        return self.kind == "number"

    @property
    def has_missing(self) -> bool:
        """Whether missing values occurred."""
        return bool(self.weight[self.roles.index("missing")] > 0)

    def __repr__(self) -> str:
        importance, additivity = _over(self.importance, None), float(self.additivity.mean())
        verdict = f", {NOISE}" if self.is_noise else ""
        return (
            f"FeatureShape({self.name!r}, {self.kind}, {counted(len(self.labels), 'value')}, "
            f"importance {importance:.4g}, additivity {additivity:.3f}{verdict})"
        )


@dataclass(frozen=True, eq=False)
class GlobalExplanation(InterpretView, Serial):
    """The effects of all features of a model, on the scale of the score.

    Examples
    --------
    >>> import numpy as np
    >>> from nae import NAERegressor
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> model = NAERegressor(n_members=1, max_epochs=5, random_state=0).fit(X, X[:, 0])
    >>> explanation = model.explain_global()
    >>> len(explanation.feature("x0").labels) == len(explanation.feature("x0").mean)
    True
    """

    type_name: ClassVar[str] = "global"
    explanation_type: ClassVar[str] = "global"

    name: str
    features: tuple[FeatureShape, ...]
    outputs: tuple[str, ...]  # targets or classes; for two classes, the one that the score speaks for
    classes: tuple[str, ...]
    link: str
    intercept: Array  # (output,)
    quantile_levels: tuple[float, ...]
    additivity: float  # mean over features, which the dial steers
    interaction_share: float  # share of the score's variance that context causes
    cancellation: float  # summed variance of the contributions over that of the score
    stability: float | None  # agreement of the members, features weighted by their variance
    coverage: float | None = None  # of the bands around the effects; None without evidence

    def __repr__(self) -> str:
        ranked = self.ranked()
        columns: dict[str, list[str] | list[float]] = {
            "feature": [shape.name for shape in ranked],
            "kind": [shape.kind for shape in ranked],
            "importance": [_over(shape.importance, None) for shape in ranked],
            "additivity": [float(shape.additivity.mean()) for shape in ranked],
        }
        if any(shape.is_noise for shape in ranked):
            columns["verdict"] = [NOISE if shape.is_noise else "" for shape in ranked]
        title = (
            f"GlobalExplanation({counted(len(ranked), 'feature')}, {counted(len(self.outputs), 'output')}, "
            f"weighted additivity {self.additivity_weighted:.3f}, interaction share {self.interaction_share:.3f})"
        )
        return digest(title, columns, "to_frame(level='features')")

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @property
    def additivity_weighted(self) -> float:
        """The share of all contributions' variance that own values explain; features are weighted by their variance."""
        share = np.stack([feature.additivity for feature in self.features])
        return weighted_share(share, np.stack([feature.importance**2 for feature in self.features]))

    def feature(self, name: str) -> FeatureShape:
        """Return one feature."""
        if name not in self.feature_names:
            raise UserError(f"No feature is called {name!r}.{did_you_mean(name, self.feature_names)}")
        return self.features[self.feature_names.index(name)]

    def ranked(self, output: int | None = None) -> tuple[FeatureShape, ...]:
        """Return the features sorted by importance, the largest first; for one output, or for all if None."""
        return tuple(sorted(self.features, key=lambda feature: -_over(feature.importance, output)))

    def to_frame(self, backend: str = "pandas", *, level: str = "values") -> Any:
        """Return a data frame: one row per value (``level='values'``) or per feature (``level='features'``)."""
        if level not in ("values", "features"):
            raise UserError(f"level must be 'values' or 'features'; got {level!r}.")
        columns = self._value_columns() if level == "values" else self._feature_columns()
        return make_frame(columns, backend)

    def _value_columns(self) -> Mapping[str, Column]:
        columns: dict[str, list[object]] = {
            key: [] for key in ("feature", "value", "role", "number", "output", "weight", "mean", "lower", "upper")
        }
        for level in self.quantile_levels:
            columns[f"q{round(100 * level):02d}"] = []
        columns |= {"member_spread": [], "effect_lower": [], "effect_upper": []}
        for shape in self.features:
            for at, label in enumerate(shape.labels):
                for o, output in enumerate(self.outputs):
                    found = (shape.name, label, shape.roles[at], float(shape.numbers[at]), output)
                    numbers = (shape.weight[at], shape.mean[at, o], shape.lower[at, o], shape.upper[at, o])
                    band = (np.nan if end is None else end[at, o] for end in (shape.effect_lower, shape.effect_upper))
                    row = (*found, *numbers, *shape.quantiles[:, at, o], shape.member_spread[at, o], *band)
                    for key, item in zip(columns, row, strict=True):
                        columns[key].append(float(item) if isinstance(item, np.floating) else item)
        return columns

    def _feature_columns(self) -> Mapping[str, Column]:
        rows = [(shape, o) for shape in self.features for o in range(len(self.outputs))]
        return {
            "feature": [shape.name for shape, _ in rows],
            "output": [self.outputs[o] for _, o in rows],
            "importance": [float(shape.importance[o]) for shape, o in rows],
            "additivity": [float(shape.additivity[o]) for shape, o in rows],
            "interaction_share": [float(shape.interaction_share[o]) for shape, o in rows],
            "stability": [np.nan if shape.stability is None else float(shape.stability[o]) for shape, o in rows],
            "chance": [np.nan if shape.chance is None else float(shape.chance[o]) for shape, o in rows],
            "is_noise": [shape.is_noise for shape, _ in rows],
        }


def explain_global(
    model: TableModel, cells: Cells | None = None, *, name: str | None = None, coverage: float = 0.9
) -> GlobalExplanation:
    """Return the effects of all features; if ``cells`` are given, also the contributions of at most 1,000 rows.

    ``coverage`` is that of the bands around the effects, if the model has evidence for them.
    """
    statistics = require_statistics(model)
    check_coverage(coverage)
    members = MeanGate(model, statistics.gate_mean).slot_effects()
    score = np.maximum(statistics.score_variance, 1e-300)
    if cells is not None and len(cells) > _MOST_DOTS:
        cells = cells.take(np.linspace(0, len(cells) - 1, _MOST_DOTS).round().astype(np.int64))
    dots = None
    if cells is not None:
        dots = model.contributions(cells).values.reshape(len(cells), model.n_features, model.n_outputs)
    shapes = (_shape(model, i, members=members, cells=cells, dots=dots) for i in range(model.n_features))
    features = tuple(_with_band(model, i, shape, coverage) for i, shape in enumerate(shapes))
    size = statistics.variance.sum(axis=1) + 1e-300
    return GlobalExplanation(
        name=name or "Neural additive experts",
        features=features,
        outputs=model.outputs,
        classes=model.classes,
        link=model.link.name,
        intercept=model.intercept.astype(np.float64),
        quantile_levels=QUANTILES,
        additivity=float(np.mean([feature.additivity for feature in features])),
        interaction_share=float(np.mean(statistics.additive_variance / score)),
        cancellation=float(np.mean(statistics.variance.sum(axis=0) / score)),
        stability=None if model.n_members == 1 else float(size @ statistics.agreement.mean(axis=1) / size.sum()),
        coverage=None if model.evidence is None or not model.evidence.has_bands else coverage,
    )


def _shape(model: TableModel, i: int, *, members: Array, cells: Cells | None, dots: Array | None) -> FeatureShape:
    statistics = require_statistics(model)
    feature, slots = model.schema.features[i], model.schema.slots(i)
    order = value_order(feature, statistics.mean[slots])
    labels, roles = feature.labels, _roles(feature)
    weight = statistics.weight[slots]
    share = weight / weight.sum()
    effects = members[slots] - np.tensordot(share, members[slots], axes=1)  # members also differ by constants
    lower, upper = (bound[slots] for bound in model.slot_bounds)
    variance, residual, score = statistics.variance[i], statistics.residual[i], statistics.score_variance
    return FeatureShape(
        name=feature.name,
        kind=feature.kind,
        labels=tuple(labels[at] for at in order),
        roles=tuple(roles[at] for at in order),
        numbers=_numbers(feature)[order],
        weight=share[order],
        mean=statistics.mean[slots][order],
        lower=lower[order].astype(np.float64),
        upper=upper[order].astype(np.float64),
        quantiles=statistics.quantiles[:, slots][:, order],
        member_spread=effects.std(axis=-1)[order],
        importance=np.sqrt(variance),
        additivity=additive_share(variance, residual, score),
        interaction_share=residual / np.maximum(score, 1e-300),
        stability=None if model.n_members == 1 else statistics.agreement[i],
        dots_at=None if cells is None else _dot_positions(model, cells, i, order),
        dots=None if dots is None else dots[:, i],
    )


def _with_band(model: TableModel, i: int, shape: FeatureShape, coverage: float) -> FeatureShape:
    """Return a shape with the band around its effects, if there is evidence for them."""
    evidence, slots = model.evidence, model.schema.slots(i)
    if evidence is None:
        return shape
    shape = replace(shape, chance=evidence.chance[i])
    if not evidence.has_bands:
        return shape
    mean = require_statistics(model).mean[slots]
    order = value_order(model.schema.features[i], mean)
    lower, upper = (end[order] for end in evidence.take(slots).band(mean.astype(np.float64), coverage))
    return replace(shape, effect_lower=lower, effect_upper=upper)


def value_order(feature: Feature, mean: Array) -> IntArray:
    """Return the order in which the values of a feature are shown: (value,), *missing* and *unseen* last.

    Numbers ascend. Levels follow their own order where they have one (numbers, ranges, months, weekdays); otherwise
    they are sorted by mean effect (ascending), or by frequency (descending) if there are several outputs.
    """
    order = np.arange(feature.n_slots)
    if not isinstance(feature, Category):
        return order
    n_levels = len(feature.levels)
    keys = _natural_keys(feature.levels)
    if keys is not None:
        order[:n_levels] = np.argsort(keys, kind="stable")
    elif mean.shape[1] == 1:
        order[:n_levels] = np.argsort(mean[:n_levels, 0], kind="stable")
    return order  # levels are stored in order of frequency


def _natural_keys(levels: Sequence[str]) -> list[float] | None:
    words = [level.strip().lower()[:3] for level in levels]
    for known in (_MONTHS, _DAYS):
        if levels and all(word in known for word in words) and all(level.isalpha() for level in levels):
            return [float(known.index(word)) for word in words]
    found = [re.match(r"\s*([<>≤≥]=?)?\s*(-?\d+(?:\.\d+)?)", level) for level in levels]
    if not levels or any(match is None for match in found):
        return None
    # '<5' comes before '5', '>5' after it.
    nudge = {"<": -1e-9, ">": 1e-9}
    return [float(m[2]) + nudge.get((m[1] or " ")[0], 0.0) for m in found if m is not None]


def _roles(feature: Feature) -> tuple[str, ...]:
    values = ["value"] * feature.n_values
    if isinstance(feature, Category) and feature.rare:
        values[-1] = OTHER
    return (*values, "missing", "unseen")


def _numbers(feature: Feature) -> Array:
    out = np.full(feature.n_slots, np.nan)
    if not isinstance(feature, Category):
        out[: feature.n_values] = feature.knots
    return out


def _dot_positions(model: TableModel, cells: Cells, i: int, order: IntArray) -> Array:
    feature = model.schema.features[i]
    within = cells.slot[:, i] - int(model.schema.offsets[i])
    if isinstance(feature, Category):
        return np.argsort(order)[within].astype(np.float64)
    knots = feature.knots
    upper = np.minimum(within + 1, feature.n_values - 1)
    inside = within < feature.n_values
    at = np.where(inside, within, 0)
    fraction = cells.fraction[:, i].astype(np.float64)
    return np.where(inside, knots[at] * (1 - fraction) + knots[upper] * fraction, np.nan)


def _over(importance: Array, output: int | None) -> float:
    return float(importance[output]) if output is not None else float(np.sqrt(np.mean(importance**2)))
