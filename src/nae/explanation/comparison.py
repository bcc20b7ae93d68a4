"""Compare two versions of a model: for any input, by the tables alone, or on rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array
from nae.certificates import Changes, Found, alike, farthest
from nae.errors import DataError
from nae.explanation.changes import Change, ChangeCertificate, RowChange, RowChanges
from nae.explanation.inputs import values_on
from nae.explanation.scores import ScoreOf, scores_of
from nae.quality.rows import table_of
from nae.tables.model import TableModel

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two models that answer the same question from the same features."""

    first: TableModel
    second: TableModel

    def __repr__(self) -> str:
        return f"Comparison({self.first!r}, {self.second!r}; certificate(), on(X))"

    def certificate(self, *, output: str | None = None, seed: int = 0) -> ChangeCertificate:
        """Return how much the score and every contribution change at most, for any input, proven from the tables.

        The inputs include values out of range, missing values and unseen levels.

        Parameters
        ----------
        output
            One of several targets; if None, all. With more than two classes, the class whose log-odds against each
            other class are compared; if None, the score of each class.
        seed
            Random seed of the search for large changes.
        """
        found: list[Change] = []
        for score in scores_of(self.first, output, is_score=output is not None):
            changes = Changes.of(self.first, self.second, score.direction)
            found += self._changes(changes, score, seed)
        return ChangeCertificate(tuple(found), self.first.link.name)

    def on(self, X: Any, *, output: str | None = None) -> RowChanges:
        """Return how much the score and every contribution change on the rows of a table.

        Parameters
        ----------
        X
            A table.
        output
            As in :meth:`certificate`.
        """
        moved = self._moved(X)  # (B, 1 + F, O)
        if len(moved) == 0:
            raise DataError("Models are compared on rows; the table has none.")
        scores = scores_of(self.first, output, is_score=output is not None)
        return RowChanges(tuple(one for score in scores for one in self._row_changes(moved, score)), len(moved))

    def _changes(self, changes: Changes, score: ScoreOf, seed: int) -> Iterator[Change]:
        names = self.first.feature_names
        best, of_features = farthest(changes, seed=seed)
        yield self._change(changes, score, None, changes.of_score, best)
        for name, limits, found in zip(names, changes.of_features, of_features, strict=True):
            yield self._change(changes, score, name, limits, found)

    def _change(self, changes: Changes, score: ScoreOf, feature: str | None, limits: Array, found: Found) -> Change:
        what = score.title if feature is None else f"contribution of {feature} to the {score.title}"
        return Change(
            feature=feature,
            output=score.name,
            title=what,
            lower=float(limits[0]),
            upper=float(limits[1]),
            rounding=changes.rounding,
            features=self.first.feature_names,
            example=values_on(changes.first.model, found.row),
            values=(found.first, found.second),
        )

    def _moved(self, X: Any) -> Array:
        """Return the change of the score and of every contribution, (row, 1 + feature, output)."""
        one, other = self.first.contributions(X), self.second.contributions(X)
        order = [other.feature_names.index(name) for name in one.feature_names]
        shape = (len(one), self.first.n_features, self.first.n_outputs)
        moved = other.values[:, order].reshape(shape) - one.values.reshape(shape)
        intercept = (self.second.intercept - self.first.intercept)[None, None]
        return np.concatenate([moved.sum(axis=1, keepdims=True) + intercept, moved], axis=1)

    def _row_changes(self, moved: Array, score: ScoreOf) -> Iterator[RowChange]:
        sizes = np.abs(moved @ score.direction)
        for name, size in zip((None, *self.first.feature_names), sizes.T, strict=True):
            yield RowChange(name, score.name, float(size.mean()), float(size.max()), int(size.argmax()))


def compare(first: Any, second: Any) -> Comparison:
    """Return two versions of a model side by side.

    Parameters
    ----------
    first, second
        Fitted estimators, or models from ``nae.load``. They may differ in knots, levels, experts, members, gates and
        routings, but must have the same features, outputs and link.

    Examples
    --------
    >>> import nae
    >>> from nae import NAERegressor, datasets
    >>> X, y = datasets.multimodal(200)
    >>> models = [NAERegressor(random_state=seed, n_members=1, max_epochs=2).fit(X, y) for seed in (0, 1)]
    >>> compared = nae.compare(*models)
    >>> compared.on(X).largest <= compared.certificate().bound
    True
    """
    one, other = table_of(first), table_of(second)
    return Comparison(one, alike(one, other))
