"""The methods that say how sure a prediction is."""

from typing import TYPE_CHECKING, Any

from nae.tables.answers.asked import Asked

if TYPE_CHECKING:
    from nae.tables.model import TableModel
    from nae.uncertainty.explaining import IntervalFactors, IntervalModel
    from nae.uncertainty.intervals import PredictionInterval
    from nae.uncertainty.sets import PredictionSet

__all__ = ["Doubts"]


class Doubts(Asked):
    """Prediction intervals and sets, measured on rows that members held out or on rows that are given."""

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        offset: Any = None,
        calibrate_on: Any = None,
        by: str | None = None,
    ) -> "PredictionInterval":
        """Return an interval for the target of every row, so that a share ``coverage`` of new rows lies within theirs.

        Parameters
        ----------
        X
            A table.
        coverage
            The share, between 0 and 1. Below and above the interval, equally many rows are expected.
        offset
            The offset, as in ``predict``.
        calibrate_on
            ``(X, y)``, or ``(X, y, offset)``: rows that the fit has not seen. With them, the coverage is guaranteed
            (split conformal prediction). If None, the model uses the residuals that its members had on the rows they
            held out, and the coverage is measured.
        by
            A column of X, and of the rows in ``calibrate_on``, which need not be a feature. The coverage then holds
            within each of its levels (Mondrian). Levels of fewer than 100 rows are put together.
        """
        from nae.uncertainty.intervals import predict_interval

        return predict_interval(
            self._explained_model(),
            self._explained_columns,
            X,
            coverage=coverage,
            offset=offset,
            calibrate_on=calibrate_on,
            by=by,
        )

    @property
    def interval_model(self) -> "IntervalModel":
        """Which features make the model unsure: by which factor each value makes intervals wider or narrower."""
        from nae.uncertainty.explaining import interval_model

        return interval_model(self._explained_model())

    def explain_interval(self, X: Any, *, offset: Any = None) -> "IntervalFactors":
        """Return the factors that make the interval of every row wider or narrower, one per feature.

        Parameters
        ----------
        X
            A table.
        offset
            The offset, as in ``predict``.
        """
        from nae.uncertainty.explaining import explain_interval

        return explain_interval(self._explained_model(), self._explained_columns, X, offset=offset)

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        offset: Any = None,
        calibrate_on: Any = None,
        by: str | None = None,
        allow_empty: bool = False,
    ) -> "PredictionSet":
        """Return a set of classes for every row, so that a share ``coverage`` of new rows has its class in its set.

        A set holds the classes whose probability exceeds a threshold that is the same for all rows; these are the
        smallest sets on average (least ambiguous classifier).

        Parameters
        ----------
        X
            A table.
        coverage
            The share, between 0 and 1.
        offset
            The offset, as in ``predict``.
        calibrate_on
            Rows that the fit has not seen, as in ``predict_interval``.
        by
            A column within whose levels the coverage holds, as in ``predict_interval``.
        allow_empty
            If False, the most probable class is always in the set. Then more rows than asked for have their class in
            their set where the model is right more often than that.
        """
        from nae.uncertainty.sets import predict_set

        return predict_set(
            self._explained_model(),
            self._explained_columns,
            X,
            coverage=coverage,
            offset=offset,
            calibrate_on=calibrate_on,
            by=by,
            allow_empty=allow_empty,
        )

    def calibrated(self, X: Any, y: Any, *, offset: Any = None, by: str | None = None) -> "TableModel":
        """Return a model whose intervals and sets have a guaranteed coverage, given rows that the fit has not seen.

        Parameters
        ----------
        X, y
            A table and its target.
        offset
            The offset of its rows, as in ``predict``.
        by
            A column within whose levels the coverage holds, as in ``predict_interval``. The model then needs the column
            in every table that it is asked about.
        """
        from nae.uncertainty.calibrating import calibrated

        return calibrated(self._explained_model(), self._explained_columns, (X, y, offset), by=by)
