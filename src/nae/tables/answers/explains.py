"""The methods that explain a model and its predictions."""

from typing import TYPE_CHECKING, Any

from nae.tables.answers.asked import Asked

if TYPE_CHECKING:
    from nae.explanation.caps import EffectCaps
    from nae.explanation.interaction import InteractionExplanation, Isolation
    from nae.explanation.local import LocalExplanation
    from nae.explanation.shapes import GlobalExplanation
    from nae.explanation.strength import InteractionStrength, PairStrength
    from nae.tables.model import TableModel

__all__ = ["Explains"]


class Explains(Asked):
    """Explanations, computed from the tables. No data is needed."""

    def for_class(self, label: Any) -> "TableModel":
        """Return a model of two classes whose score is the log-odds of the given class.

        Its contributions and explanations are evidence for that class. Compared to those for the other class, they
        have the opposite sign, and lower and upper bounds are exchanged. Predictions and probabilities are the same.

        Parameters
        ----------
        label
            One of the two classes.
        """
        from nae.tables.sides import speaking_for

        return speaking_for(self._explained_model(), str(label))

    def explain_global(self, X: Any = None, *, name: str | None = None, coverage: float = 0.9) -> "GlobalExplanation":
        """Return the effect of every feature at each of its values.

        Parameters
        ----------
        X
            Rows whose contributions are shown as dots; at most 1,000 are kept. If None, no dots are shown.
        name
            A title.
        coverage
            How often the bands ``effect_lower`` to ``effect_upper`` hold the true effect, on average over a curve. The
            bands are estimated from the training rows; bounds, in contrast, say what the model can do for any input.
        """
        from nae.explanation.shapes import explain_global

        model = self._explained_model()
        cells = None
        if X is not None:
            cells = model.schema.locate(self._explained_columns(X), dtype=model.experts.dtype)
        return explain_global(model, cells, name=name, coverage=coverage)

    def explain_local(
        self,
        X: Any,
        y: Any = None,
        *,
        offset: Any = None,
        n_causes: int = 10,
        name: str | None = None,
        unit: str = "score",
    ) -> "LocalExplanation":
        """Return the contributions of the rows, each with its bounds, its own effect and the causes of its shift.

        In the unit of the prediction, contributions are changes from the average row, whose contributions are the means
        over the training rows. A change of the score counts as much as the prediction changes in the mean on the
        straight way from the score of the average row to that of the row. So contributions still add up.

        Parameters
        ----------
        X
            A table.
        y
            The actual target, to be shown beside the prediction.
        offset
            The offset, as in ``predict``. It is required if ``y`` is given and the model was fitted with an offset.
        n_causes
            Number of causes that are named per shift. The others are summed up as the rest.
        name
            A title.
        unit
            'score'; 'probability' of each class; or 'response', the unit of the prediction.
        """
        from nae.explanation.local import explain_local

        model, columns = self._explained_model(), self._explained_columns(X)
        return explain_local(model, columns, y, offset=offset, n_causes=n_causes, name=name, unit=unit)

    def explain_interaction(
        self, *features: str, isolation: "Isolation" = "mean", resolution: int = 48, X: Any = None
    ) -> "InteractionExplanation":
        """Return the joint effect of two or three features.

        Parameters
        ----------
        features
            Two or three names. The first two are the axes of a map, which is drawn at a few values of the third.
        isolation
            'mean' holds the gate terms of all other features at their mean over the training rows. 'paper' keeps only
            the terms of the other named features, without the bias and the feature's own term, and without clamps.
        resolution
            Number of values along the axis of a number.
        X
            Rows that show where the data lies. For a deep gate, they are also the contexts that are averaged.
        """
        from nae.explanation.interaction import explain_interaction

        model = self._explained_model()
        cells = None
        if X is not None:
            cells = model.schema.locate(self._explained_columns(X), dtype=model.experts.dtype)
        return explain_interaction(model, features, isolation=isolation, resolution=resolution, cells=cells)

    def interaction_strength(self) -> "InteractionStrength":
        """Return which features change each other's effect, and how much: a directed matrix."""
        from nae.explanation.strength import interaction_strength

        return interaction_strength(self._explained_model())

    def top_interactions(self, k: int = 10) -> "tuple[PairStrength, ...]":
        """Return the ``k`` pairs of features that change each other's contributions the most."""
        return self.interaction_strength().top(k)

    @property
    def effect_caps_(self) -> "EffectCaps":
        """The most that each feature can raise or lower the score, for any input: computed from the knots."""
        from nae.explanation.caps import effect_caps

        return effect_caps(self._explained_model())
