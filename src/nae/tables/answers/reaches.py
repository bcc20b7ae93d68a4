"""The method that finds what would have to change for a target to be reached."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from nae.tables.answers.asked import Asked

if TYPE_CHECKING:
    from nae.decisions.recourse.results import Recourse

__all__ = ["Reaches"]


class Reaches(Asked):
    """Ways to a target, from the tables alone."""

    def recourse(
        self,
        row: Any,
        *,
        target: Any,
        output: str | None = None,
        fixed: Iterable[str] | str = (),
        increasing: Iterable[str] | str = (),
        decreasing: Iterable[str] | str = (),
        may_miss: Iterable[str] | str = (),
        costs: Mapping[str, Any] | None = None,
        per_change: float = 0.0,
        k: int = 3,
        n: int = 3,
        like: Any = None,
        support: float = 0.01,
        budget: int | None = None,
        offset: Any = None,
        wording: Any = None,
    ) -> "Recourse":
        """Return the cheapest changes of a few features of a row that reach a target, and a proof that none is cheaper.

        A change of a number costs the share of the training rows that lie between the old and the new value. A new
        level, a value instead of a missing one, and a missing value cost 1.

        Parameters
        ----------
        row
            A table of one row, or a dict of values.
        target
            A class that is to be chosen. Or a pair ``(low, high)`` for the prediction, or for the probability of a
            class, where None leaves an end open. For a regressor also a number, which is to be crossed.
        output
            For a pair, the class or target that it is about. If None, the class that the score speaks for.
        fixed
            Features that stay as they are.
        increasing
            Features that may only rise.
        decreasing
            Features that may only fall.
        may_miss
            Features that may become missing. All others may not.
        costs
            By feature: a number that multiplies the cost, or a dict with the cost of each level.
        per_change
            What every change costs besides. A larger number leads to fewer changes.
        k
            The most features that are changed at once.
        n
            The most ways that are returned; none of them changes all the features of a cheaper one.
        like
            A table. Every pair of values of which one is new must occur in one of its rows: the same level, and a
            number within 10 % of the training rows. If None, every feature is looked at alone, since a model stores no
            pairs. At most 2,000 rows are used.
        support
            A level is possible if at least this share of the training rows has it. A number is possible unless more
            than ``1 - support`` of these rows lie on one side of it, or rows lie only far from it. If 0, every level,
            and every number between the first and the last knot, is possible.
        budget
            Number of boxes into which the possible changes are divided. More boxes prove more, and take more time. If
            None, 5,000 to 20,000, fewer for larger models.
        offset
            The offset of the row, as in ``predict``.
        wording
            A TOML file, or a dict of its content, with the names, units and values of features, as in ``reasons``.
            Features that may not be named stay as they are.
        """
        from nae.decisions.recourse.finding import recourse

        return recourse(
            self._explained_model(),
            self._explained_columns,
            row,
            target=target,
            output=output,
            fixed=fixed,
            increasing=increasing,
            decreasing=decreasing,
            may_miss=may_miss,
            costs=costs,
            per_change=per_change,
            k=k,
            n=n,
            like=like,
            support=support,
            budget=budget,
            offset=offset,
            wording=wording,
        )
