"""The explaining methods that estimators and saved models share."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from nae.encoding.columns import Columns

if TYPE_CHECKING:
    from nae.explanation.caps import EffectCaps
    from nae.explanation.interaction import InteractionExplanation, Isolation
    from nae.explanation.local import LocalExplanation
    from nae.explanation.shapes import GlobalExplanation
    from nae.explanation.strength import InteractionStrength, PairStrength
    from nae.tables.model import TableModel

__all__ = ["Explains"]


class Explains:
    """Explanations, read off the tables: the same on an estimator and on a saved model, without its data."""

    @abstractmethod
    def _explained_model(self) -> "TableModel":
        """Return the tables."""

    @abstractmethod
    def _explained_columns(self, X: Any) -> Columns:
        """Return the columns of a table in the model's order."""

    def for_class(self, label: Any) -> "TableModel":
        """Return the tables of a model of two classes with a score that speaks for one of them.

        Its contributions and explanations are evidence for that class: those for the other one with their signs
        changed, and lower and upper bounds exchanged. Predictions and probabilities stay the same.

        Parameters
        ----------
        label
            One of the two classes.
        """
        from nae.tables.sides import speaking_for

        return speaking_for(self._explained_model(), str(label))

    def explain_global(self, X: Any = None, *, name: str | None = None) -> "GlobalExplanation":
        """Return what the model does with every feature, value by value.

        Parameters
        ----------
        X
            Rows whose actual contributions are shown as dots (at most 1,000 are kept); none are needed.
        name
            A title.
        """
        from nae.explanation.shapes import explain_global

        model = self._explained_model()
        cells = None
        if X is not None:
            cells = model.schema.locate(self._explained_columns(X), dtype=model.experts.dtype)
        return explain_global(model, cells, name=name)

    def explain_local(
        self, X: Any, y: Any = None, *, offset: Any = None, n_causes: int = 10, name: str | None = None
    ) -> "LocalExplanation":
        """Return every contribution of the rows with its bounds, its own effect, and the causes of its shift.

        Parameters
        ----------
        X
            A table.
        y
            The truth, to be shown beside the prediction.
        offset
            As for ``predict``. Beside a truth it must be given if the model was fitted with one.
        n_causes
            How many of the features behind a shift are named; the others are summed as the rest.
        name
            A title.
        """
        from nae.explanation.local import explain_local

        columns = self._explained_columns(X)
        return explain_local(self._explained_model(), columns, y, offset=offset, n_causes=n_causes, name=name)

    def explain_interaction(
        self, *features: str, isolation: "Isolation" = "mean", resolution: int = 48, X: Any = None
    ) -> "InteractionExplanation":
        """Return what two or three features do together.

        Parameters
        ----------
        features
            Two or three names. The first two span a map; the third is shown at a few of its values.
        isolation
            'mean' holds all other features' gate terms at their training mean; 'paper' keeps only the other named
            features' terms, without bias and own term.
        resolution
            Values of a number along an axis.
        X
            Rows that show where data lies (and, for a deep gate, the contexts to average over).
        """
        from nae.explanation.interaction import explain_interaction

        model = self._explained_model()
        cells = None
        if X is not None:
            cells = model.schema.locate(self._explained_columns(X), dtype=model.experts.dtype)
        return explain_interaction(model, features, isolation=isolation, resolution=resolution, cells=cells)

    def interaction_strength(self) -> "InteractionStrength":
        """Return the directed matrix of who changes how whom counts."""
        from nae.explanation.strength import interaction_strength

        return interaction_strength(self._explained_model())

    def top_interactions(self, k: int = 10) -> "tuple[PairStrength, ...]":
        """Return the ``k`` pairs of features that change each other's contributions the most."""
        return self.interaction_strength().top(k)

    @property
    def effect_caps_(self) -> "EffectCaps":
        """The most every feature can ever add to the score and take from it, proven from the knots."""
        from nae.explanation.caps import effect_caps

        return effect_caps(self._explained_model())
