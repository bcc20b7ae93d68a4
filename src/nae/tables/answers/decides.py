"""The methods that help to decide about somebody, and to explain the decision."""

from typing import TYPE_CHECKING, Any

from nae.tables.answers.asked import Asked

if TYPE_CHECKING:
    from nae.decisions.scorecards import Reference, Relativities, Scorecard

__all__ = ["Decides"]


class Decides(Asked):
    """Decisions, from the tables alone."""

    def scorecard(
        self,
        X: Any = None,
        *,
        base: float = 600.0,
        points_to_double: float = 20.0,
        odds: float = 1.0,
        max_bins: int | None = 8,
        reference: "Reference" = "average",
        decimals: int = 0,
    ) -> "Scorecard":
        """Return a table of points for a model of two classes: the points of a row add up.

        Every feature has bins, whose points are the mean contribution over the training rows, rounded. The table says
        how far it is from the model, and beside each bin the smallest and the largest contribution that any input with
        such a value can have. Points speak for the second class; ``for_class`` turns a model round.

        Parameters
        ----------
        X
            Rows on which the difference between table and model is measured. If None, it is bounded from the statistics
            of the training rows.
        base
            The points of a row with the given odds. Default: 600.
        points_to_double
            The points that double the odds. Default: 20.
        odds
            The odds at the base. Default: 1, a probability of one half.
        max_bins
            Largest number of bins per feature, beside *missing* and *unseen*. The bins are the best piecewise constant
            fit to the effect, weighted by the training rows. Where the effect is monotone, or promised to be, so are
            the points. If None, every knot and level has a bin unless its neighbour has the same points.
        reference
            Where points are zero: at the 'average' of the training rows, in the 'lowest' bin of each feature, or in its
            most 'common' bin.
        decimals
            Decimals of the points. Default: 0.
        """
        from nae.decisions.scorecards import scorecard

        return scorecard(
            self._explained_model(),
            None if X is None else self._explained_columns(X),
            base=base,
            points_to_double=points_to_double,
            odds=odds,
            max_bins=max_bins,
            reference=reference,
            decimals=decimals,
        )

    def relativities(
        self,
        X: Any = None,
        *,
        max_bins: int | None = 8,
        reference: "Reference" = "common",
        decimals: int = 3,
        output: str | int | None = None,
    ) -> "Relativities":
        """Return a table of factors for a model with a log link: the prediction is their product with the base.

        Parameters
        ----------
        X
            Rows on which the difference between table and model is measured, without an offset.
        max_bins
            Largest number of bins per feature, as in ``scorecard``.
        reference
            Where factors are 1: in the most 'common' bin of each feature, in its 'lowest' bin, or at the 'average' of
            the training rows.
        decimals
            Decimals of the factors. Default: 3.
        output
            One of several targets.
        """
        from nae.decisions.scorecards import relativities

        return relativities(
            self._explained_model(),
            None if X is None else self._explained_columns(X),
            max_bins=max_bins,
            reference=reference,
            decimals=decimals,
            output=output,
        )
