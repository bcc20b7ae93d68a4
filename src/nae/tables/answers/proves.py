"""The methods that prove what a model can and cannot do, for any input."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from nae.tables.answers.asked import Asked

if TYPE_CHECKING:
    from nae.explanation.certificates import Certificates
    from nae.explanation.extremes import Extremes
    from nae.explanation.questions import Questions
    from nae.explanation.ranges import PredictionRange

__all__ = ["Proves"]


class Proves(Asked):
    """Proofs, from the tables alone."""

    def verify(self, *, name: str = "The model") -> "Certificates":
        """Prove again what the fit was made to keep, and return the certificates; none if it promised nothing.

        A promise that is refuted, undecided or unknown to this version is a FormatError.

        Parameters
        ----------
        name
            What the error calls the model.
        """
        from nae.explanation.certify import verify

        return verify(self._explained_model(), name=name)

    def certify(
        self,
        *,
        monotone: Mapping[str, str | int] | None = None,
        max_effect: Mapping[str, float] | None = None,
        isolated: Iterable[str] | str = (),
        unchanged: Iterable[str] | str = (),
        curved: Mapping[str, str] | None = None,
        ordered: bool = False,
        output: str | None = None,
    ) -> "Certificates":
        """Return, for every statement, whether the tables prove it, inputs refute it, or neither.

        Statements are about the score, for any input. A violation of at most 1e-6 of the score's spread (the highest
        minus the lowest score that the experts allow) counts as none. Without a statement, what the fit was made to
        keep is proven again: ``model.training.constraints``.

        Parameters
        ----------
        monotone
            'increasing' ('+', 1) or 'decreasing' ('-', -1) by feature: a higher value never lowers (raises) the score,
            whatever the other features are. Missing values are outside the order.
        max_effect
            A limit by feature, in units of the score: changing the feature alone never moves the score by more.
        isolated
            Features that change the contribution of no other feature.
        unchanged
            Features whose contribution is changed by no other feature.
        curved
            'convex' or 'concave' by feature: between its first and last knot, the score is never above (below) the
            straight line between two values of the feature.
        ordered
            Whether no output is ever above the one after it, such as several quantiles.
        output
            One of several targets; if None, all. With more than two classes, the class whose log-odds against each
            other class are certified; monotone, max_effect and curved need it.
        """
        from nae.explanation.certify import certify

        return certify(
            self._explained_model(),
            monotone=monotone,
            max_effect=max_effect,
            isolated=isolated,
            unchanged=unchanged,
            curved=curved,
            ordered=ordered,
            output=output,
        )

    def predict_range(
        self,
        X: Any,
        *,
        unknown: Iterable[str] | str = (),
        within: Mapping[str, Any] | None = None,
        budget: int = 32,
        offset: Any = None,
    ) -> "PredictionRange":
        """Return a proven range of every row's score and prediction when some features are not known.

        Parameters
        ----------
        X
            A table. Columns of the features below may be absent; their values do not matter.
        unknown
            Features that may have any value: any number, any level, missing, and for a category a level that was never
            seen.
        within
            Limits by feature. For a number ``(low, high)``, where None leaves an end open; for a category its possible
            levels, among which None is a missing value. A number within limits is not missing.
        budget
            Number of boxes per row and end of the range, into which the unknown values are divided. More boxes give
            narrower ranges, and take more time. Default: 32.
        offset
            The offset, as in ``predict``.
        """
        from nae.explanation.ranges import predict_range

        return predict_range(
            self._explained_model(),
            self._explained_columns,
            X,
            unknown=unknown,
            within=within,
            budget=budget,
            offset=offset,
        )

    def next_question(
        self,
        row: Any,
        *,
        unknown: Iterable[str] | str | None = None,
        within: Mapping[str, Any] | None = None,
        budget: int = 16,
    ) -> "Questions":
        """Return the unknown features of a row, first the one whose answer narrows the range of the score most.

        Up to 32 answers are tried per feature: its levels, or knots for equal shares of the training rows. Features are
        ordered by the mean width of the range after them, weighted by the training rows.

        Parameters
        ----------
        row
            A table of one row, or a dict of values.
        unknown
            The unknown features. If None, those that the row lacks or that are missing in it.
        within
            Limits by feature, as in ``predict_range``.
        budget
            Number of boxes per answer and end of the range. Default: 16.
        """
        from nae.explanation.questions import next_question

        return next_question(
            self._explained_model(), self._explained_columns, row, unknown=unknown, within=within, budget=budget
        )

    def extremes(
        self, *, within: Mapping[str, Any] | None = None, budget: int | None = None, output: str | None = None
    ) -> "Extremes":
        """Return the smallest and the largest score that any input can have, with inputs that reach them.

        Every extreme has the score of an input that a search found, and a proven bound. The truth lies between them.

        Parameters
        ----------
        within
            Limits by feature, as in ``predict_range``. Features without limits may have any value.
        budget
            Number of boxes into which the inputs are divided. If None, 64 to 4,096, fewer for larger models.
        output
            One of several targets; if None, all. With more than two classes, the class whose log-odds against each
            other class are meant.
        """
        from nae.explanation.extremes import extremes

        return extremes(self._explained_model(), within=within, budget=budget, output=output)
