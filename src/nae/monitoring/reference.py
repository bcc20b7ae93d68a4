"""What the training rows looked like, from the statistics that a model stores."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae.encoding.schema import Category, Feature
from nae.errors import DataError
from nae.explanation.reference import require_statistics
from nae.tables.model import TableModel
from nae.tables.statistics import Statistics

__all__ = ["Reference", "can_compare"]


def can_compare(model: TableModel) -> bool:
    """Return whether a model remembers its training rows as they were, and not multiplied by class weights."""
    return model.statistics is not None and not model.class_weight


@dataclass(frozen=True, eq=False)
class Reference:
    """The training rows as drift is measured against them."""

    model: TableModel
    statistics: Statistics
    n_rows: float

    @staticmethod
    def of(model: TableModel, n_rows: int | None = None) -> "Reference":
        """Return the reference of a model with statistics, of ``n_rows`` rows if these are not its training rows."""
        statistics = require_statistics(model)
        if n_rows is not None:
            return Reference(model, statistics, float(n_rows))
        if not can_compare(model):
            raise DataError(
                "Drift needs the training rows as they were; this model remembers them multiplied by class weights. "
                "Pass the training rows, reference=X (nae drift --reference)."
            )
        weight = float(statistics.weight[model.schema.slots(0)].sum())
        # Weights need not be counts, and the statistics may be those of other rows: the smaller number claims less.
        return Reference(model, statistics, min(float(model.training.n_rows or weight), weight))

    @property
    def means(self) -> Array:
        """The mean contribution, (feature, output)."""
        slots = [self.model.schema.slots(i) for i in range(self.model.n_features)]
        weight, mean = self.statistics.weight, self.statistics.mean
        return np.stack([weight[own] @ mean[own] / weight[own].sum() for own in slots])

    def weight(self, feature: int) -> Array:
        """Return the weight at every slot of a feature."""
        return self.statistics.weight[self.model.schema.slots(feature)]

    def unseen_share(self, feature: Feature, weight: Array) -> float:
        """Return the share of new rows that will hold a level unlike all before, if nothing changed (Good-Turing).

        It is the number of levels that occurred once, over the number of rows. The stored statistics do not hold that
        number, so it is estimated from the mean frequency of the rare levels.
        """
        n_once = 1.0
        if isinstance(feature, Category) and feature.rare:
            n_rare = len(feature.rare)
            shared = weight[len(feature.levels)] / weight.sum() * self.n_rows
            n_once += n_rare * min(1.0, n_rare / max(shared, 1.0))
        return min(1.0, n_once / (self.n_rows + 1))

    @property
    def beyond_share(self) -> float:
        """The share of new rows that will lie outside the range of the training rows, if nothing changed."""
        return 2 / (self.n_rows + 2)
