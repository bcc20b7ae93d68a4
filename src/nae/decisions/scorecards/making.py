"""Make a scorecard or relativities of a model."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from nae._typing import Array
from nae.decisions.scorecards.card import BinCard, Relativities, Scorecard
from nae.decisions.scorecards.groups import Curve, Group, group_values, read_curve
from nae.decisions.scorecards.losses import loss_of, losses_of, measured_on
from nae.decisions.scorecards.parts import CardBin, CardFeature
from nae.decisions.scorecards.scales import FactorScale, PointScale, Scale
from nae.decisions.scorecards.text import label_of, levels_of
from nae.encoding.columns import Columns
from nae.errors import ConfigError, UserError
from nae.explanation.outputs import pick_output
from nae.tables.model import TableModel

__all__ = ["Reference", "relativities", "scorecard"]

Reference = Literal["average", "lowest", "common"]
_REFERENCES = ("average", "lowest", "common")
_FINEST = 9  # decimals
Made = TypeVar("Made", bound=BinCard)


def scorecard(
    model: TableModel,
    columns: Columns | None = None,
    *,
    base: float,
    points_to_double: float,
    odds: float,
    max_bins: int | None,
    reference: Reference,
    decimals: int,
) -> Scorecard:
    """Return the points of a model of two classes; see :meth:`nae.tables.answers.decides.Decides.scorecard`."""
    if len(model.classes) != 2:
        hint = " relativities() is for a log link." if model.link.name == "log" else ""
        raise UserError(f"A scorecard needs a model of two classes; this one has a {model.link.name} link.{hint}")
    for name, number in (("base", base), ("points_to_double", points_to_double), ("odds", odds)):
        if not math.isfinite(number) or (number <= 0 and name != "base"):
            raise ConfigError(f"{name} must be a finite number{'' if name == 'base' else ' above 0'}; got {number}.")
    scale = PointScale(points_to_double / math.log(2.0), _decimals(decimals))
    parts = _Parts.of(model, 0, scale, max_bins=max_bins, reference=reference)
    start = parts.start - math.log(odds) + base / scale.per_unit
    card = Scorecard(
        **parts.shared(decimals, start),
        base_score=float(base),
        points_to_double=float(points_to_double),
        odds=float(odds),
    )
    return _measured(card, model, columns)


def relativities(
    model: TableModel,
    columns: Columns | None = None,
    *,
    max_bins: int | None,
    reference: Reference,
    decimals: int,
    output: str | int | None,
) -> Relativities:
    """Return the factors of a model with a log link; see :meth:`nae.tables.answers.decides.Decides.relativities`."""
    if model.link.name != "log":
        hint = (
            " scorecard() is for two classes." if len(model.classes) == 2 else " Fit with loss='poisson', for example."
        )
        raise UserError(f"Relativities need a model with a log link; this one has a {model.link.name} link.{hint}")
    scale = FactorScale(_decimals(decimals))
    parts = _Parts.of(model, pick_output(model.outputs, output), scale, max_bins=max_bins, reference=reference)
    return _measured(Relativities(**parts.shared(decimals, parts.start)), model, columns)


@dataclass(frozen=True)
class _Parts:
    """What both kinds of table are made of."""

    model: TableModel
    output: int
    scale: Scale
    reference: Reference
    features: tuple[CardFeature, ...]
    start: float  # the score of a row in the reference bins

    @staticmethod
    def of(model: TableModel, output: int, scale: Scale, *, max_bins: int | None, reference: Reference) -> "_Parts":
        if max_bins is not None and (type(max_bins) is not int or max_bins < 1):
            raise ConfigError(f"max_bins must be an integer of at least 1, or None; got {max_bins!r}.")
        if reference not in _REFERENCES:
            raise ConfigError(f"reference must be one of {list(_REFERENCES)}; got {reference!r}.")
        found = [_feature(read_curve(model, i, output), scale, max_bins, reference) for i in range(model.n_features)]
        start = float(model.intercept[output]) + sum(shift for _, shift in found)
        return _Parts(model, output, scale, reference, tuple(feature for feature, _ in found), start)

    def shared(self, decimals: int, start: float) -> dict[str, Any]:
        """Return the fields of either table; its base shows ``start``."""
        base = float(self.scale.base(start))
        off = abs(float(self.scale.effects(np.array(base))) - start)
        return {
            "features": self.features,
            "output": self.model.classes[1] if self.model.classes else self.model.outputs[self.output],
            "has_names": self.model.schema.has_names,
            "base": base,
            "reference": self.reference,
            "decimals": decimals,
            "loss": loss_of(self.model, self.output, self.features, off),
        }


def _feature(curve: Curve, scale: Scale, max_bins: int | None, reference: Reference) -> tuple[CardFeature, float]:
    """Return the bins of a feature, and the effect of its reference, which the base takes over."""
    limit = curve.feature.n_values if max_bins is None else max_bins
    shift = _shift(group_values(curve, limit, _as_it_is), reference)
    groups = group_values(curve, limit, lambda effects: scale.shown(effects - shift))
    bins = tuple(_bin(curve, group, scale, shift) for group in groups)
    return CardFeature(
        name=curve.feature.name,
        kind=curve.feature.kind,
        bins=bins,
        shift=shift,
        direction=curve.direction,
        **losses_of(curve, groups, scale, shift),
    ), shift


def _bin(curve: Curve, group: Group, scale: Scale, shift: float) -> CardBin:
    least, most = scale.outward(group.lower - shift, group.upper - shift)
    return CardBin(
        label=label_of(curve.feature, group),
        role=group.role,
        low=group.low,
        high=group.high,
        levels=levels_of(curve.feature, group),
        share=group.share,
        shown=float(scale.shown(np.array(group.effect - shift))),
        effect=group.effect - shift,
        lower=group.lower - shift,
        upper=group.upper - shift,
        least=least,
        most=most,
    )


def _shift(groups: tuple[Group, ...], reference: Reference) -> float:
    if reference == "average":
        return sum(group.share * group.effect for group in groups)
    if reference == "lowest":
        return min(group.effect for group in groups)
    return max(groups, key=lambda group: group.share).effect


def _as_it_is(effects: Array) -> Array:
    return effects


def _measured(card: Made, model: TableModel, columns: Columns | None) -> Made:
    if columns is None:
        return card
    at = 0 if model.classes else model.outputs.index(card.output)
    return replace(card, loss=replace(card.loss, measured=measured_on(card, model, at, columns)))


def _decimals(decimals: int) -> int:
    if type(decimals) is not int or not 0 <= decimals <= _FINEST:
        raise ConfigError(f"decimals must be an integer from 0 to {_FINEST}; got {decimals!r}.")
    return decimals
