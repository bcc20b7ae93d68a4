"""The card of a model: its target, its features, its quality, its promises and the proven limits of every effect."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nae._words import counted, quantiles
from nae.encoding.schema import Category, Feature
from nae.errors import UserError
from nae.quality import Measure, Quality
from nae.tables.model import TableModel

__all__ = ["Card", "CardFeature", "CardPromise", "make_card"]


@dataclass(frozen=True)
class CardFeature:
    """One feature, described in words."""

    name: str
    kind: str
    values: str
    has_missing: bool
    reason: str


@dataclass(frozen=True)
class CardPromise:
    """What the fit was made to keep, and whether the tables prove it for any input."""

    claim: str
    verdict: str  # proven, refuted, undecided, or unknown if this version cannot check it
    limit: float | None
    bound: float | None  # the largest change for any input; None for infinity
    sentence: str


@dataclass(frozen=True)
class Card:
    """A summary of a model file, to be read before the model is used."""

    sentence: str
    target: str | None  # its name, if it has one
    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    link: str
    gate: str
    routing: str
    n_members: int
    n_experts: int
    features: tuple[CardFeature, ...]
    caps: tuple[str, ...]
    promises: tuple[CardPromise, ...]
    measures: tuple[tuple[str, float], ...]  # weighted additivity, interaction share, cancellation
    quality: tuple[Measure, ...]  # measured on the test rows
    training: tuple[tuple[str, str], ...]
    intervals: str | None = None  # what prediction intervals are measured on, and their coverage
    edits: tuple[Mapping[str, Any], ...] = ()  # who changed what after training, when and why

    def to_dict(self) -> dict[str, Any]:
        """Return the card as JSON values."""
        content = asdict(self)
        content["measures"] = dict(self.measures)
        content["quality"] = [
            {"measure": one.name, "model": one.value, "baseline": one.baseline, "interval": one.interval}
            for one in self.quality
        ]
        content["training"] = dict(self.training)
        content["edits"] = [dict(one) for one in self.edits]
        return content


def make_card(model: TableModel) -> Card:
    """Return the card of a model."""
    target = _target(model)
    return Card(
        sentence=_sentence(model, target),
        target=target,
        classes=model.classes,
        outputs=model.outputs,
        link=model.link.name,
        gate=model.gate.kind,
        routing=model.routing.name,
        n_members=model.n_members,
        n_experts=model.n_experts,
        features=tuple(_feature(feature) for feature in model.schema.features),
        caps=tuple(cap.sentence for cap in model.effect_caps_.caps),
        promises=tuple(_promises(model)),
        measures=_measures(model),
        quality=Quality.of(model.training) if model.training.n_test_rows else (),
        training=(*_offset(model), *_facts(model.training.to_dict())),
        intervals=_intervals(model),
        edits=model.training.edits or (),
    )


def _intervals(model: TableModel) -> str | None:
    entry = model.training.intervals
    if entry is None or model.residuals is None:
        return None
    by = f", by {entry['by']['column']}" if "by" in entry else ""
    if entry["source"] == "calibration":
        return f"coverage guaranteed by {counted(entry['n_rows'], 'row')} kept apart{by}"
    shares = [f"{share:.3f} for {asked}" for asked, share in entry["coverage"].items()]
    measured = f"; coverage measured {', '.join(shares)}" if shares else ""
    return f"from {counted(entry['n_rows'], 'row')} that members held out{measured}"


def _promises(model: TableModel) -> Iterator[CardPromise]:
    if not model.training.constraints:
        return
    try:
        found = model.certify()
    except UserError as error:  # a file of a newer version, or an edited one
        yield CardPromise(str(error), "unknown", None, None, str(error))
        return
    for one in found.certificates:
        bound = one.bound if math.isfinite(one.bound) else None
        yield CardPromise(one.claim, one.verdict, one.limit, bound, one.sentence)


def _offset(model: TableModel) -> tuple[tuple[str, str], ...]:
    names = model.offset_names
    return () if names is None else (("offset", ", ".join(names) or "fitted with one that had no name"),)


def _facts(training: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in training.items():
        if isinstance(value, str | int | float) and name != "target":
            yield name.replace("_", " "), _shown(value)


def _target(model: TableModel) -> str | None:
    """Return the name of the target. The outputs of a classifier are classes, so they do not name it."""
    if model.training.target:
        return model.training.target
    is_unnamed = model.classes or model.training.levels or model.outputs == ("score",)
    return None if is_unnamed else ", ".join(model.outputs)


def _sentence(model: TableModel, target: str | None) -> str:
    what = target or "a number"
    if levels := model.training.levels:
        what = f"the {quantiles(levels)} of {what}"
    if model.classes:
        what = f"one of {len(model.classes)} classes" + (f" of {target}" if target else "")
    n_rows = model.training.n_rows
    rows = "" if n_rows is None else f", learned from {counted(n_rows, 'row')}"
    return f"predicts {what} from {counted(model.n_features, 'feature')}{rows}"


def _feature(feature: Feature) -> CardFeature:
    if isinstance(feature, Category):
        shown = ", ".join(feature.levels[:5])
        values = f"{counted(len(feature.levels), 'level')}: {shown}{', …' if len(feature.levels) > 5 else ''}"
    elif feature.is_boolean:
        values = "true, false"
    else:
        values = f"{feature.knots[0]:.6g} to {feature.knots[-1]:.6g}"
    return CardFeature(feature.name, feature.kind, values, feature.has_missing, feature.reason)


def _measures(model: TableModel) -> tuple[tuple[str, float], ...]:
    if model.statistics is None:
        return ()
    found = model.explain_global()
    return (
        ("weighted additivity", round(found.additivity_weighted, 4)),
        ("interaction share", round(found.interaction_share, 4)),
        ("cancellation", round(found.cancellation, 4)),
    )


def _shown(value: str | float) -> str:
    if isinstance(value, str | bool):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
