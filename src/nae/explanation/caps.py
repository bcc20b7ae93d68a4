"""Effect caps: by how much a feature can raise or lower the score at most, proven from the knots.

Between two knots, every expert is linear in the value. The largest contribution that any gate can give is the maximum
of these lines (for equal weights, of means of these lines). This is a convex function, so it is largest at one of the
two knots. The smallest contribution is concave, so it is smallest at one of them. Both hold for means over members,
too. The extremes over all slots therefore hold for every input, including out-of-range, missing and unseen values.

Clamps are linear between two knots, too. What they leave of a contribution is bounded from one knot to the next, by
the extremes of experts and clamps at both.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array, IntArray
from nae._words import counted
from nae.encoding.cells import Cells
from nae.encoding.schema import Number
from nae.errors import UserError, did_you_mean
from nae.explanation.inputs import rounded_up
from nae.explanation.printed import MOST_LINES
from nae.explanation.serial import Serial, make_frame
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["EffectCap", "EffectCaps", "effect_caps", "extremes_between"]


@dataclass(frozen=True)
class EffectCap:
    """By how much one feature can raise and lower the score at most, with a sentence for the model card."""

    feature: str
    outputs: tuple[str, ...]  # the output; for several classes, the two whose log-odds the feature can move most
    adds: float  # at least 0
    takes: float  # at most 0
    sentence: str


@dataclass(frozen=True, eq=False)
class EffectCaps(Serial):
    """The caps of all features, measured from the average training row, where every contribution is 0."""

    type_name: ClassVar[str] = "caps"

    caps: tuple[EffectCap, ...]

    def __len__(self) -> int:
        return len(self.caps)

    def __getitem__(self, feature: str) -> EffectCap:
        """Return the cap of a feature, or its first cap if there are several outputs."""
        for cap in self.caps:
            if cap.feature == feature:
                return cap
        raise UserError(f"No feature is called {feature!r}.{did_you_mean(feature, [c.feature for c in self.caps])}")

    def __repr__(self) -> str:
        lines = [f"  {cap.sentence}" for cap in self.caps[:MOST_LINES]]
        rest = [f"  … {len(self) - MOST_LINES:,} more: text, to_frame()"] if len(self) > MOST_LINES else []
        return "\n".join([f"EffectCaps({counted(len(self), 'cap')})", *lines, *rest])

    @property
    def text(self) -> str:
        """One sentence per cap."""
        return "\n".join(cap.sentence for cap in self.caps)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per cap."""
        return make_frame(
            {
                "feature": [cap.feature for cap in self.caps],
                "output": [" / ".join(cap.outputs) for cap in self.caps],
                "adds": [cap.adds for cap in self.caps],
                "takes": [cap.takes for cap in self.caps],
            },
            backend,
        )


def effect_caps(model: TableModel) -> EffectCaps:
    """Return the caps of a model: per feature and output, or per feature over all two-class log-odds."""
    if len(model.classes) > 2:
        return EffectCaps(tuple(_class_cap(model, i) for i in range(model.n_features)))
    caps = []
    for i, name in enumerate(model.feature_names):
        least, most = _clipped_extremes(model, i)
        for o, output in enumerate(model.outputs):
            adds, takes = max(float(most[o]), 0.0), min(float(least[o]), 0.0)
            sentence = (
                f"Whatever the input, {name} raises the {_score_name(model, output)} by at most {rounded_up(adds)} "
                f"and lowers it by at most {rounded_up(-takes)}."
            )
            caps.append(EffectCap(name, (output,), adds, takes, sentence))
    return EffectCaps(tuple(caps))


def _class_cap(model: TableModel, i: int) -> EffectCap:
    """Return by how much a feature can move the log-odds of any two classes at most. The classes share the gate."""
    best, pair = _farthest_clipped(model, i)
    names = (model.outputs[pair[0]], model.outputs[pair[1]])
    best = max(best, 0.0)
    way = "reached by" if model.clamps is None else "largest for"
    sentence = (
        f"Whatever the input, {model.feature_names[i]} moves the log-odds of any two classes by at most "
        f"{rounded_up(best)} ({way} {names[0]} against {names[1]})."
    )
    return EffectCap(model.feature_names[i], names, best, -best, sentence)


def _farthest_clipped(model: TableModel, i: int) -> tuple[float, tuple[int, int]]:
    """Return by how much two outputs of a feature differ at most, and their positions.

    Clipped, they differ by no more than the experts allow, or the lower ends, or the upper ends, whichever is most: if
    a <= b + d, and the ends of a exceed those of b by at most d, then a exceeds b by at most d after clipping, too.
    """
    slots = model.schema.slots(i)
    best, pair = _farthest(model, model.experts[slots].astype(np.float64))
    if model.clamps is None:
        return best, pair
    ends = np.concatenate([end[slots].astype(np.float64) for end in model.clamps.to_arrays().values()])  # (2 n, O)
    held = max((best, pair), _widest(ends, ends), key=lambda one: one[0])
    return min(held, _widest(*_cell_extremes(model, i)), key=lambda one: one[0])


def _widest(low: Array, high: Array) -> tuple[float, tuple[int, int]]:
    """Return the largest difference of two outputs in one row of (row, output), and their positions."""
    row = int((high.max(axis=1) - low.min(axis=1)).argmax())
    return float(high[row].max() - low[row].min()), (int(high[row].argmax()), int(low[row].argmin()))


def _farthest(model: TableModel, experts: Array) -> tuple[float, tuple[int, int]]:
    """Return the largest difference of two outputs of ``experts``, (slot, expert, output, member), and their positions.

    Most pairs are skipped. A pair can exceed the best one so far only if its first class exceeds the smallest of all
    classes, and its second class falls below the largest, by more than that. Thousands of classes have millions of
    pairs.
    """
    above = _extremes(model, experts - experts.min(axis=2, keepdims=True))[1]
    below = _extremes(model, experts.max(axis=2, keepdims=True) - experts)[1]
    best, pair = -np.inf, (0, 1)
    for first in np.argsort(-above, kind="stable").tolist():
        if above[first] <= best:
            break
        others = np.flatnonzero(below > best)
        others = others[others != first]
        most = _extremes(model, experts[:, :, [first]] - experts[:, :, others])[1]
        if len(others) and most.max() > best:
            best, pair = float(most.max()), (first, int(others[most.argmax()]))
    return best, pair


def _clipped_extremes(model: TableModel, i: int) -> tuple[Array, Array]:
    """Return the least and the largest contribution of a feature for any input, (output,) each."""
    if model.clamps is None:
        return _extremes(model, model.experts[model.schema.slots(i)])
    floor, ceiling = _cell_extremes(model, i)
    return floor.min(axis=0), ceiling.max(axis=0)


def _cell_extremes(model: TableModel, i: int) -> tuple[Array, Array]:
    """Return the least and the largest contribution from every slot to the next, (slot, output) each."""
    slots, feature = model.schema.slots(i), model.schema.features[i]
    at = np.arange(feature.n_slots)
    following = at + (at < feature.n_values - 1) if isinstance(feature, Number) else at
    return extremes_between(model, Cells(at[:, None] + slots.start, np.zeros((len(at), 1))), following)


def extremes_between(model: TableModel, cells: Cells, following: IntArray) -> tuple[Array, Array]:
    """Return the least and the largest contribution from every cell to another one, (row, output) each.

    The cells are those of one feature, (row, 1). No knot may lie between a cell and the ``following`` one, which is
    given by its row.
    """
    experts = interpolate(model.experts, cells)[:, 0].astype(np.float64)  # (row, K, O, M)
    least, most = (bound.mean(axis=-1) for bound in model.routing.bounds(experts, axis=1))

    def low(values: Array) -> Array:
        return np.minimum(values, values[following])

    def high(values: Array) -> Array:
        return np.maximum(values, values[following])

    if model.clamps is None:
        slack = _slack(model, experts)
        return low(least) - slack, high(most) + slack
    lower, upper = (end[:, 0].astype(np.float64) for end in model.clamps.at(cells))
    slack = _slack(model, np.concatenate([experts.ravel(), lower.ravel(), upper.ravel()]))
    floor = np.minimum(np.maximum(low(least), low(lower)), low(upper))
    ceiling = np.maximum(np.minimum(high(most), high(upper)), high(lower))
    return floor - slack, ceiling + slack


def _extremes(model: TableModel, experts: Array) -> tuple[Array, Array]:
    """Return minimum and maximum over the slots, (output,) each, widened by the rounding error of the tables."""
    experts = experts.astype(np.float64)
    least, most = model.routing.bounds(experts, axis=1)  # (slot, O, M)
    slack = _slack(model, experts)
    return least.mean(axis=-1).min(axis=0) - slack, most.mean(axis=-1).max(axis=0) + slack


def _slack(model: TableModel, values: Array) -> float:
    """Return the rounding error of tables with these numbers."""
    return float(8 * np.finfo(model.experts.dtype).eps * np.abs(values).max(initial=0.0))


def _score_name(model: TableModel, output: str) -> str:
    if model.link.name == "logit":
        return f"log-odds of {output}"
    name = "score" if output == "score" else f"score of {output}"
    return f"logarithm of the prediction of {output}" if model.link.name == "log" and output != "score" else name
