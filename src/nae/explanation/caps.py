"""Effect caps: the most a feature can ever add to the score and take from it, proven from the knots.

Between two knots every expert is linear in the value. The largest contribution that any gate can give is a maximum of
such lines (of means of them, for equal weights), a convex function, so over the whole segment it is largest at one of
its two knots; the least is smallest there. A mean over members keeps this. Visiting every slot therefore proves the cap
for any input, out of range, missing and unseen values included.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.errors import UserError, did_you_mean
from nae.explanation.printed import MOST_LINES
from nae.explanation.serial import Serial, make_frame
from nae.tables.model import TableModel

__all__ = ["EffectCap", "EffectCaps", "effect_caps"]


@dataclass(frozen=True)
class EffectCap:
    """The most one feature can add and take, with a sentence for the model card."""

    feature: str
    outputs: tuple[str, ...]  # the output; for several classes, the two whose log-odds it can move the most
    adds: float  # at least 0
    takes: float  # at most 0
    sentence: str


@dataclass(frozen=True, eq=False)
class EffectCaps(Serial):
    """The caps of all features; contributions average 0 over the training rows, so 0 is the average row."""

    type_name: ClassVar[str] = "caps"

    caps: tuple[EffectCap, ...]

    def __len__(self) -> int:
        return len(self.caps)

    def __getitem__(self, feature: str) -> EffectCap:
        """Return the (first) cap of a feature."""
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
        least, most = _extremes(model, model.experts[model.schema.slots(i)])
        for o, output in enumerate(model.outputs):
            adds, takes = max(float(most[o]), 0.0), min(float(least[o]), 0.0)
            sentence = (
                f"Whatever the input, {name} adds at most {_up(adds)} to the {_score_name(model, output)} "
                f"and takes at most {_up(-takes)} from it."
            )
            caps.append(EffectCap(name, (output,), adds, takes, sentence))
    return EffectCaps(tuple(caps))


def _class_cap(model: TableModel, i: int) -> EffectCap:
    """Return the most a feature can move the log-odds of any two classes: the gate is shared by the classes."""
    best, pair = _farthest(model, model.experts[model.schema.slots(i)].astype(np.float64))
    names = (model.outputs[pair[0]], model.outputs[pair[1]])
    best = max(best, 0.0)
    sentence = (
        f"Whatever the input, {model.feature_names[i]} moves the log-odds of any two classes by at most {_up(best)} "
        f"(reached by {names[0]} against {names[1]})."
    )
    return EffectCap(model.feature_names[i], names, best, -best, sentence)


def _farthest(model: TableModel, experts: Array) -> tuple[float, tuple[int, int]]:
    """Return the largest difference of two outputs of ``experts``, (slot, expert, output, member), and which these are.

    A pair of classes is looked at only where each of the two is, compared with the least and the most that all classes
    have, farther away than the best pair so far: a few of the millions of pairs that thousands of classes make.
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


def _extremes(model: TableModel, experts: Array) -> tuple[Array, Array]:
    """Return the least and the most over the slots, (output,) each, widened by the tables' rounding."""
    experts = experts.astype(np.float64)
    least, most = model.routing.bounds(experts, axis=1)  # (slot, O, M)
    slack = 8 * np.finfo(model.experts.dtype).eps * np.abs(experts).max(initial=0.0)
    return least.mean(axis=-1).min(axis=0) - slack, most.mean(axis=-1).max(axis=0) + slack


def _score_name(model: TableModel, output: str) -> str:
    if model.link.name == "logit":
        return f"log-odds of {output}"
    name = "score" if output == "score" else f"score of {output}"
    return f"logarithm of the prediction of {output}" if model.link.name == "log" and output != "score" else name


def _up(value: float) -> str:
    """Return a number rounded up to four digits, so that the sentence stays true."""
    if value == 0:
        return "0"
    step = 10.0 ** (np.floor(np.log10(value)) - 3)
    return f"{np.ceil(value / step) * step:.4g}"
