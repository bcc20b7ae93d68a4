"""From constraints to the forms of a network: the conditions under which each promise holds (docs/guarantees.md)."""

from collections.abc import Iterable, Mapping

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.constraints.constraints import Constraints, Score
from nae.encoding import Number, Schema
from nae.encoding.schema import Feature
from nae.network import Forms, NetworkConfig

__all__ = ["count_ordered", "find_leaders", "make_forms", "needs_logits", "place_knots"]

_ROUNDING = 1e-6  # share of a cap that single precision may need
_SHARPNESS = 0.05  # 0.03 to 0.1 are alike; beyond, small tables lose (docs/decisions/0019-constraints.md)
_LOGITS = ("additive", "diagonal")  # gates whose terms are logits


def needs_logits(constraints: Constraints, n_members: int) -> bool:
    """Return whether some feature may change some features and not others: blocks of an additive gate are zero."""
    rows = np.delete(_masks(constraints, n_members), sorted(_isolated(constraints)), axis=1)
    return not rows.all()


def make_forms(constraints: Constraints, schema: Schema, config: NetworkConfig, score: Score, n_slots: int) -> Forms:
    """Return the forms of a network with ``n_slots`` slots per feature."""
    n_ordered = np.array([count_ordered(feature) for feature in schema.features])
    rises, bends = (_signs(part, n_ordered) * score.sign for part in (constraints.monotone, constraints.curved))
    isolated = _among(_isolated(constraints), len(schema))
    leads = find_leaders(constraints, config, len(schema)) & (rises != 0)
    is_silent = (bends != 0) | ((rises != 0) & ~leads)  # changes nothing, itself included
    allows = _masks(constraints, config.n_members)
    others = ~np.eye(len(schema), dtype=bool)
    allows[:, isolated] &= ~others[isolated]  # but perhaps itself
    allows[:, is_silent] = False
    if config.gate not in _LOGITS:
        allows[:, isolated] = False
    # What a leader changes is sorted, which would break a curve's bend; behind a matrix, the matrix leaves these out.
    has_logits = config.gate in _LOGITS
    if has_logits:
        allows &= ~(leads[:, None] & (bends != 0))
    is_led = (allows & leads[None, :, None]).any(axis=(0, 1)) & (bends == 0)
    return Forms(
        n_ordered=n_ordered,
        places=place_knots(schema, n_slots),
        rises=rises,
        bends=bends,
        caps=_caps(constraints, score, len(schema)),
        is_single=_among(constraints.allowed.unchanged, len(schema)),
        is_sorted=is_led & (config.n_experts > 1),
        sorts_outputs=constraints.sorts_outputs,
        leads=leads,
        n_leading=0 if has_logits or not leads.any() else max(1, config.gate_rank // 2),
        allows=allows,
        sharpness=_SHARPNESS,
    )


def find_leaders(constraints: Constraints, config: NetworkConfig, n_features: int) -> BoolArray:
    """Return the monotone features that may change others, (F,).

    That takes weights that never jump: with fewer active experts than experts, a monotone feature changes nobody.
    """
    can_lead = config.routing == "softmax" and config.n_active == config.n_experts > 1
    isolated = _isolated(constraints)
    return _among([i for i in constraints.monotone if can_lead and i not in isolated], n_features)


def _among(chosen: Iterable[int], n_features: int) -> BoolArray:
    return np.asarray(np.isin(np.arange(n_features), sorted(chosen)))


def _masks(constraints: Constraints, n_members: int) -> BoolArray:
    """Return who may change whom. A feature that nothing changes has one expert in effect: its gate does not matter."""
    masks = np.array(constraints.allowed.masks(n_members))
    masks[:, :, sorted(constraints.allowed.unchanged)] = True
    return masks


def _isolated(constraints: Constraints) -> frozenset[int]:
    """Return the features that change no other one: as asked, or because a cap is a promise about the whole score."""
    return constraints.allowed.isolated | set(constraints.max_effect) | set(constraints.curved)


def count_ordered(feature: Feature) -> int:
    """Return how many slots of a feature have an order."""
    has_order = isinstance(feature, Number) or feature.is_ordered
    return feature.n_values if has_order else 1


def _signs(given: Mapping[int, int], n_ordered: IntArray) -> IntArray:
    found = np.zeros(len(n_ordered), dtype=np.int64)
    for i, sign in given.items():
        found[i] = sign if n_ordered[i] > 1 else 0
    return found


def place_knots(schema: Schema, n_slots: int) -> Array:
    """Return where the slots of numbers lie between the first and the last knot, (F, S)."""
    places = np.zeros((len(schema), n_slots))
    for i, feature in enumerate(schema.features):
        if isinstance(feature, Number) and feature.n_values > 1:
            half = feature.knots / 2  # the range itself may overflow
            places[i, : feature.n_values] = (half - half[0]) / (half[-1] - half[0])
    return places


def _caps(constraints: Constraints, score: Score, n_features: int) -> Array:
    """Return how far experts may be from zero, (F, O), in units of training.

    Two experts are twice as far from each other. For more than two classes, contributions are differences of two
    outputs.
    """
    caps = np.full((n_features, len(score.spread)), np.inf)
    unit = np.where(score.spread > 0, score.spread, 1.0) * (4 if score.n_classes > 2 else 2)
    for i, limit in constraints.max_effect.items():
        caps[i] = limit * (1 - _ROUNDING) / unit
    return caps
