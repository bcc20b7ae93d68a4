"""The editor of a model: every method returns a new one, with the edit in the record of the model."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.editing.arguments import read_direction, read_text
from nae.editing.capping import capped
from nae.editing.choosing import monotone
from nae.editing.fixing import dropped, level_set, pinned
from nae.editing.part import Part, slot_weight
from nae.editing.record import Edit, history
from nae.editing.rows import EditRows
from nae.editing.settling import Entry, settle
from nae.editing.smoothing import smoothed
from nae.errors import UserError
from nae.explanation.changes import ChangeCertificate
from nae.explanation.comparison import compare
from nae.quality import Quality
from nae.quality.rows import table_of
from nae.tables.model import TableModel

__all__ = ["Editor", "edit"]


@dataclass(frozen=True, eq=False)
class Editor:
    """A model that can be edited. Each edit returns another editor; this one, and its model, stay as they are.

    Attributes
    ----------
    model
        The model after the edits.
    original
        The model that editing began with.
    """

    model: TableModel
    original: TableModel
    rows: EditRows | None
    weight: Array  # (slot,), of the training rows
    who: str | None = None
    why: str | None = None
    fitted: Any = None  # the estimator whose model is edited

    def __repr__(self) -> str:
        lines = [f"  {one.summary}" for one in self.record]
        return "\n".join([f"Editor({counted(len(self.record), 'edit')}; {self.model!r})", *lines])

    def pin(self, feature: str, *, at: Any, who: str | None = None, why: str | None = None) -> "Editor":
        """Answer as though the feature always had one value; None is missing.

        The feature alone then never moves the score. Contributions are those of rows that have this value.
        """
        return self._edited("pin", feature, lambda part: pinned(part, at=at), who=who, why=why, at=at)

    def drop(self, feature: str, *, who: str | None = None, why: str | None = None) -> "Editor":
        """Take the feature's contribution away. The gates of other features see the mean of its gate terms.

        The column is still asked for, but no value of it changes anything.
        """
        return self._edited("drop", feature, dropped, who=who, why=why)

    def cap(self, feature: str, limit: float, *, who: str | None = None, why: str | None = None) -> "Editor":
        """Let the feature alone move the score by at most ``limit``, in units of the score.

        It gates no other feature any longer. Effects within the cap stay as they are, and those beyond are cut. A model
        that is proven to keep the cap already stays as it is.
        """
        return self._edited("cap", feature, lambda part: capped(part, limit=limit), who=who, why=why, limit=limit)

    def set_level(
        self,
        feature: str,
        level: Any,
        value: float | Sequence[float],
        *,
        who: str | None = None,
        why: str | None = None,
    ) -> "Editor":
        """Give a level of a category or boolean, or missing values (None), one contribution whatever the context is.

        ``value`` is in units of the score, one number or one per output.
        """

        def change(part: Part) -> Part:
            return level_set(part, level=level, value=value)

        return self._edited("set_level", feature, change, who=who, why=why, level=level, value=value)

    def smooth(self, feature: str, strength: float, *, who: str | None = None, why: str | None = None) -> "Editor":
        """Smooth the curves of a number: every slope becomes a mean of those around it.

        ``strength`` 1 mixes neighbouring slopes, 100 reaches about ten knots far. Straight lines, directions, convex
        curves and bounds are kept.
        """

        def change(part: Part) -> Part:
            return smoothed(part, strength=strength)

        return self._edited("smooth", feature, change, who=who, why=why, strength=strength)

    def monotone(
        self,
        feature: str,
        way: str | int = "+",
        *,
        keep_interactions: bool | None = None,
        who: str | None = None,
        why: str | None = None,
    ) -> "Editor":
        """Let a higher value never lower the score ('+', 'increasing', 1), or never raise it ('-', 'decreasing', -1).

        The model is projected. If ``keep_interactions`` is True, the feature still changes the effects of others, in
        one direction; if False, it gates nothing. If None, it gates those features where this changes the rows less.
        A model that is proven to keep the direction already stays as it is.
        """
        sign = read_direction(way, feature)
        cells = None if self.rows is None else self.rows.cells

        def change(part: Part) -> Part:
            return monotone(part, sign=sign, keep_interactions=keep_interactions, cells=cells)

        given = {} if keep_interactions is None else {"keep_interactions": keep_interactions}
        return self._edited("monotone", feature, change, who=who, why=why, way="+" if sign > 0 else "-", **given)

    @property
    def record(self) -> tuple[Edit, ...]:
        """All edits of the model, the first one first; those of earlier sessions, too."""
        return history(self.model)

    @property
    def text(self) -> str:
        """The record in sentences."""
        return "\n".join(one.text for one in self.record)

    @property
    def quality(self) -> tuple[Quality, Quality]:
        """The quality of the original and of the edited model on the rows."""
        found = [None if self.rows is None else self.rows.measured(model) for model in (self.original, self.model)]
        if found[0] is None or found[1] is None:
            raise UserError("Quality needs rows with a target; none were given. Pass edit(model, X, y).")
        return found[0], found[1]

    @property
    def estimator(self) -> Any:
        """A copy of the estimator that was edited, with the edited model."""
        if self.fitted is None:
            raise UserError("Only an editor of an estimator returns one; this one edits a model. Use model.")
        found = copy.copy(self.fitted)
        found.model_ = self.model
        return found

    def certificate(self) -> ChangeCertificate:
        """Return how much all edits together change at most, for any input."""
        return compare(self.original, self.model).certificate()

    def _edited(
        self,
        what: str,
        feature: str,
        change: Callable[[Part], Part],
        *,
        who: str | None,
        why: str | None,
        **arguments: Any,
    ) -> "Editor":
        signed = read_text(who or self.who, "who", "risk team"), read_text(why or self.why, "why", "agreed limit")
        given = {name: _plain(value) for name, value in arguments.items()}
        entry = Entry(what, feature, given, *signed, now())
        part = Part(replace(self.model, kernel=None), self.model.schema.index(feature), self.weight)
        changed = part.model if entry.holds(part.model) else change(part).model
        model = settle(part.model, changed, self.rows, entry)
        return replace(self, model=model if self.model.kernel is None else model.compile())


def edit(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    who: str | None = None,
    why: str | None = None,
) -> Editor:
    """Return an editor of a model: pin, drop, cap, set_level, smooth and monotone, with a record of every edit.

    Parameters
    ----------
    model
        A fitted estimator, or a model from ``nae.load``. It is not changed.
    X, y
        Rows to measure every edit on, and to solve the intercept on again. Without ``y``, the intercept is kept and
        predictions need not add up to the targets any longer. Without ``X``, the model also loses its statistics,
        which explanations need; ``nae.explanation.with_statistics`` takes them from other rows.
    sample_weight, offset
        As in ``fit``.
    who, why
        Who edits, and for what reason; each edit may name its own. The record keeps them with the time.

    Examples
    --------
    >>> import nae
    >>> from nae import NAERegressor, datasets
    >>> X, y = datasets.multimodal(200)
    >>> model = NAERegressor(random_state=0, n_members=1, max_epochs=2).fit(X, y)
    >>> edited = nae.edit(model, X, y, who="risk team").cap("x1", 0.05, why="agreed limit")
    >>> edited.model.certify(max_effect={"x1": 0.05}).all_proven
    True
    """
    tables = table_of(model)
    rows = None
    if X is not None:
        rows = EditRows.read(tables, X, y, sample_weight, offset)
    elif y is not None or sample_weight is not None or offset is not None:
        raise UserError("y, sample_weight and offset belong to the rows X; X is None. Pass X.")
    weight = slot_weight(tables, None if rows is None else rows.slot_weight(tables))
    return Editor(tables, tables, rows, weight, who, why, None if model is tables else model)


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _plain(value: Any) -> Any:
    """Return an argument as a JSON value."""
    if isinstance(value, np.generic):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) else list(value) if isinstance(value, tuple) else value
