"""The methods that help to decide about somebody, and to explain the decision."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nae.tables.answers.asked import Asked

if TYPE_CHECKING:
    from nae.decisions.reasons import Reasons
    from nae.decisions.scorecards import Reference, Relativities, Scorecard
    from nae.decisions.sufficient import SufficientReasons

__all__ = ["Decides"]


class Decides(Asked):
    """Decisions, from the tables alone."""

    def reasons(
        self,
        X: Any,
        *,
        k: int = 4,
        toward: Any = None,
        against: Any = None,
        reference: Any = "mean",
        tolerance: Mapping[str, float] | None = None,
        unit: str = "score",
        offset: Any = None,
        output: str | int | None = None,
        wording: Any = None,
    ) -> "Reasons":
        """Return the features that count most for an outcome in every row, and whether their order can be relied on.

        A feature counts the difference between its contribution and that of a reference. Only features that count for
        the outcome are reasons. Each has a margin: how much more it counts than the features behind it. The margin is
        also computed for each member alone, for all values within a tolerance, and for any values of the other
        features.

        Parameters
        ----------
        X
            A table.
        k
            Number of reasons per row. Default: 4.
        toward, against
            The outcome. For a classifier it is a class; with two classes, the one that the score speaks for if none is
            named. With more classes, it is the mean of the log-odds against each other class, or the log-odds of one
            class against another if both are named. For a number it is 'high' (the default) or 'low'.
        reference
            What a row is compared with. 'mean' is the average row: the mean contribution over the training rows. 'best'
            is, of each feature, the value of training rows whose mean contribution speaks least for the outcome. Or a
            row: a table of one row, or a dict.
        tolerance
            By how much numbers may be off: an amount by feature.
        unit
            'score'; 'probability' of the outcome; or 'response', the unit of the prediction. The rule is that of
            ``explain_local``, on the way from the reference.
        offset
            The offset, as in ``predict``. The reference has the same one.
        output
            One of several targets.
        wording
            The words of the sentences: a TOML file, or a dict of its content. Features with ``named = false`` are
            left out.
        """
        from nae.decisions.reasons import find_reasons

        return find_reasons(
            self._explained_model(),
            self._explained_columns,
            X,
            k=k,
            toward=toward,
            against=against,
            reference=reference,
            tolerance=tolerance,
            unit=unit,
            offset=offset,
            output=output,
            wording=wording,
        )

    def sufficient_reasons(
        self,
        X: Any,
        *,
        threshold: float | None = None,
        toward: Any = None,
        against: Any = None,
        within: Mapping[str, Any] | None = None,
        budget: int = 32,
        tries: int = 64,
        offset: Any = None,
        output: str | int | None = None,
    ) -> "SufficientReasons":
        """Return, for every row, the fewest features that fix the decision, whatever all others are.

        That they fix it is proven with the bounds of ``predict_range``. That no fewer features do is shown by inputs
        that are decided otherwise; ``is_smallest`` says whether there is one against every smaller set.

        Parameters
        ----------
        X
            A table.
        threshold
            The decision is whether the prediction is at least this number. For two classes it is a probability. If
            None, the decision is the class that ``predict`` chooses.
        toward, against
            The class whose probability has the threshold, or the side of a number, as in ``reasons``.
        within
            Limits of the features that are not kept, as in ``predict_range``. Without limits they may have any value,
            and be missing.
        budget
            Number of boxes per proof. Default: 32.
        tries
            Largest number of sets that are tried per row. Default: 64.
        offset
            The offset, as in ``predict``. It is known.
        output
            One of several targets.
        """
        from nae.decisions.sufficient import find_sufficient

        return find_sufficient(
            self._explained_model(),
            self._explained_columns(X),
            threshold=threshold,
            toward=toward,
            against=against,
            within=within,
            budget=budget,
            tries=tries,
            offset=offset,
            output=output,
        )

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
