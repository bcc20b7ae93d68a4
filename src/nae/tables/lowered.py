"""A model as a list of steps: all that an evaluator must know of it, whatever its gate and its routing are called.

The steps lead from the cells of a row to its contributions:

1. A gate: a step that looks up terms, then those that change its values; see :mod:`nae.tables.steps`.
2. A routing, which turns the logits into weights; see :mod:`nae.tables.routing`. Where there is only one expert,
   :class:`OneExpert` stands for gate and routing.
3. :class:`Mix`, from weights to contributions and bounds.
4. :class:`Clip`, which keeps contributions and bounds within the clamps, where the model has clamps.

Every evaluator outside of numpy (the compiled kernel, C, ONNX, SQL, the page) has one table from the type of a step to
the function that carries it out. A new kind of step is thus a class, and a line in each of these tables.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from nae._typing import Array
from nae.encoding.schema import Schema
from nae.links import Link
from nae.tables.routing import EqualRouting, Routing, SoftmaxRouting
from nae.tables.steps import Change, Multiply, OwnTerms, Rectify, SumTerms, Terms

if TYPE_CHECKING:
    import numpy as np

    from nae.tables.model import TableModel

__all__ = ["STEPS", "Clip", "Lowered", "Mix", "OneExpert", "Step", "lower"]


@dataclass(frozen=True)
class OneExpert:
    """Give the weight 1 to the only expert of every feature."""


@dataclass(frozen=True, eq=False)
class Mix:
    """Turn weights into contributions and their bounds.

    A contribution is the weighted mean of the feature's experts at its cell. The bounds are means of its ``n_extreme``
    smallest and largest experts. All three are averaged over the members. Then a bound that rounding left on the wrong
    side of the contribution is moved to it.
    """

    experts: Array  # (slot, expert, output, member)
    n_extreme: int


@dataclass(frozen=True, eq=False)
class Clip:
    """Keep contributions and their bounds within the range at their cell: first raised to the lower end, then cut."""

    lower: Array  # (slot, output)
    upper: Array  # (slot, output)


Step: TypeAlias = Terms | Change | Routing | OneExpert | Mix | Clip

STEPS: tuple[type[Step], ...] = (
    SumTerms,
    OwnTerms,
    Rectify,
    Multiply,
    SoftmaxRouting,
    EqualRouting,
    OneExpert,
    Mix,
    Clip,
)
"""Every type of step that a model can have."""


@dataclass(frozen=True, eq=False)
class Lowered:
    """What an evaluator needs to know of a model: from values to cells, the steps, and from contributions on.

    The score is the intercept plus the sum of the contributions; the link turns it into the prediction.
    """

    schema: Schema
    steps: tuple[Step, ...]
    intercept: Array  # (output,), float64
    link: Link
    outputs: tuple[str, ...]
    classes: tuple[str, ...]
    n_experts: int
    n_members: int
    dtype: "np.dtype[np.floating]"  # of all arrays in steps

    @property
    def n_features(self) -> int:
        return len(self.schema)

    @property
    def n_outputs(self) -> int:
        return len(self.outputs)


def lower(model: "TableModel") -> Lowered:
    """Return a model as steps."""
    weights: tuple[Step, ...] = (model.gate.first, *model.gate.changes, model.routing)
    mix = (Mix(model.experts, model.routing.n_extreme),)
    clip = () if model.clamps is None else (Clip(model.clamps.lower, model.clamps.upper),)
    return Lowered(
        schema=model.schema,
        steps=(*(weights if model.n_experts > 1 else (OneExpert(),)), *mix, *clip),
        intercept=model.intercept,
        link=model.link,
        outputs=model.outputs,
        classes=model.classes,
        n_experts=model.n_experts,
        n_members=model.n_members,
        dtype=model.experts.dtype,
    )
