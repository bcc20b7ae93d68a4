"""The methods that compare new rows with the training rows."""

from typing import TYPE_CHECKING, Any

from nae.tables.answers.asked import Asked

if TYPE_CHECKING:
    from nae.monitoring.results import Drift

__all__ = ["Watches"]


class Watches(Asked):
    """Comparisons of new rows with the stored statistics of the training rows. No labels are needed."""

    def drift(
        self, X: Any, *, sample_weight: Any = None, reference: Any = None, limit: float = 0.2, level: float = 0.01
    ) -> "Drift":
        """Return, for every feature and for the score, whether new rows still look like the training rows.

        The distribution of the values is compared by the population stability index (PSI), apart from them the shares
        of missing values, of levels never seen and of numbers outside the range of the training rows, and the mean
        contribution. A difference is drift if it is at least ``limit`` and chance does not explain it.

        Parameters
        ----------
        X
            New rows.
        sample_weight
            One weight per row, as in ``fit``.
        reference
            Other rows to compare with, such as those of last month. If None, the training rows, as the model remembers
            them; a model that was fitted with class weights needs them here.
        limit
            The smallest PSI that is drift; for means, the distance in standard deviations of the training score.
        level
            The probability that anything is called drifted if nothing changed.
        """
        from nae.monitoring import measure_drift

        return measure_drift(
            self._explained_model(),
            self._explained_columns,
            X,
            sample_weight=sample_weight,
            reference=reference,
            limit=limit,
            level=level,
        )
