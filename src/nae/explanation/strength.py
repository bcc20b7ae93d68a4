"""Which features change each other's effect: a directed matrix, and the strongest pairs."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.errors import UserError
from nae.explanation.printed import digest
from nae.explanation.reference import require_statistics
from nae.explanation.serial import Serial, make_frame
from nae.tables.model import TableModel

__all__ = ["InteractionStrength", "PairStrength", "interaction_strength"]


@dataclass(frozen=True)
class PairStrength:
    """How much two features change each other's contributions, in units of the score."""

    first: str
    second: str
    strength: float  # root of the summed squares of both directions
    first_changes_second: float  # root mean square of the first feature's changes of the second one's contribution
    second_changes_first: float
    relative: float  # strength over the standard deviation of the score


@dataclass(frozen=True, eq=False)
class InteractionStrength(Serial):
    """The directed matrix of interactions: ``matrix()[i, j]`` is by how much feature j changes the contribution of i.

    An entry is the root mean square, over the training rows, of the parts in local explanations, in units of the score.
    """

    type_name: ClassVar[str] = "strength"

    feature_names: tuple[str, ...]
    outputs: tuple[str, ...]
    strength: Array  # (feature, cause, output)
    score_spread: Array  # (output,), standard deviation of the score

    def __repr__(self) -> str:
        n_features = len(self.feature_names)
        pairs = self.top(n_features * (n_features - 1) // 2)
        columns: dict[str, list[str] | list[float]] = {
            "pair": [f"{pair.first} × {pair.second}" for pair in pairs],
            "strength": [pair.strength for pair in pairs],
            "first changes second": [pair.first_changes_second for pair in pairs],
            "second changes first": [pair.second_changes_first for pair in pairs],
        }
        title = f"InteractionStrength({counted(n_features, 'feature')}, {counted(len(self.outputs), 'output')})"
        return digest(title, columns, "top(k), to_frame()")

    def matrix(self, output: str | None = None) -> Array:
        """Return the matrix (feature, cause) of one output, or the root mean square over all outputs."""
        if output is None:
            return np.asarray(np.sqrt(np.mean(self.strength**2, axis=2)))
        if output not in self.outputs:
            raise UserError(f"output must be one of {list(self.outputs)}; got {output!r}.")
        return self.strength[:, :, self.outputs.index(output)]

    def top(self, k: int = 10, *, output: str | None = None) -> tuple[PairStrength, ...]:
        """Return the ``k`` strongest pairs, the strongest first."""
        matrix = self.matrix(output)
        spread = self.score_spread if output is None else self.score_spread[[self.outputs.index(output)]]
        scale = max(float(np.sqrt(np.mean(spread**2))), 1e-300)
        first, second = np.triu_indices(len(self.feature_names), k=1)
        both = np.hypot(matrix[first, second], matrix[second, first])
        order = np.argsort(-both, kind="stable")[: max(k, 0)]
        return tuple(
            PairStrength(
                first=self.feature_names[first[at]],
                second=self.feature_names[second[at]],
                strength=float(both[at]),
                first_changes_second=float(matrix[second[at], first[at]]),
                second_changes_first=float(matrix[first[at], second[at]]),
                relative=float(both[at] / scale),
            )
            for at in order
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per feature, cause and output."""
        feature, cause, output = np.indices(self.strength.shape).reshape(3, -1)
        return make_frame(
            {
                "feature": [self.feature_names[i] for i in feature],
                "cause": [self.feature_names[i] for i in cause],
                "output": [self.outputs[i] for i in output],
                "strength": self.strength.ravel(),
            },
            backend,
        )


def interaction_strength(model: TableModel) -> InteractionStrength:
    """Return how much features change each other's contributions, from the stored statistics."""
    statistics = require_statistics(model)
    return InteractionStrength(
        feature_names=model.feature_names,
        outputs=model.outputs,
        strength=statistics.influence.astype(np.float64),
        score_spread=np.sqrt(statistics.score_variance),
    )
