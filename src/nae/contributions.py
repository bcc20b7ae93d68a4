"""Contributions: what each feature adds to the score of each row, with bounds."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.errors import UserError, did_you_mean

__all__ = ["Contributions"]


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each feature added to the score, with the bounds that hold for any context.

    Arrays have shape (row, feature), or (row, feature, output) for several outputs or classes.

    Attributes
    ----------
    values
        The contributions; ``values.sum(axis=1) + intercept`` is the decision function.
    lower, upper
        The smallest and largest contribution of the feature at its value, whatever the other features are.
    intercept
        A number, or one per output.
    feature_names
        One name per feature.
    output_names
        The classes or targets; empty when there is one output.
    experts
        The values of the experts, (row, feature, member, expert, output); None unless requested.
    routing
        The weights of the gate, (row, feature, member, expert); None unless requested.
    """

    values: Array
    lower: Array
    upper: Array
    intercept: Array
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...] = ()
    experts: Array | None = None
    routing: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        rows, features, *outputs = self.values.shape
        sizes = [counted(rows, "row"), counted(features, "feature"), *(counted(n, "output") for n in outputs)]
        return f"Contributions({', '.join(sizes)}; values, lower, upper, intercept)"

    @property
    def score(self) -> Array:
        """The decision function: intercept plus the sum of the contributions, (row,) or (row, output)."""
        return np.asarray(self.values.sum(axis=1) + self.intercept)

    def feature(self, name: str) -> Array:
        """Return the contributions of one feature, (row,) or (row, output)."""
        if name not in self.feature_names:
            raise UserError(f"No feature is called {name!r}.{did_you_mean(name, self.feature_names)}")
        return self.values[:, self.feature_names.index(name)]
