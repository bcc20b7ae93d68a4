"""Reasons: per row the features that count most for an outcome, in order, with what the order survives."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from nae._typing import AnyArray, Array, BoolArray, IntArray
from nae._words import counted
from nae.decisions.reasons.margins import TESTS
from nae.decisions.reasons.sentences import header, remark, sentence, unnamed_note
from nae.decisions.reasons.wording import Wording
from nae.errors import UserError
from nae.explanation.local import shown
from nae.explanation.printed import digest
from nae.explanation.serial import Column, Serial, make_frame

__all__ = ["Reasons"]

_PER_ROW = (
    *("rows", "columns", "score", "reference_score", "prediction", "reference_prediction", "differences", "own"),
    *("features", "margin", "places", "listed", "found", "agreeing", "resolution"),
)


@dataclass(frozen=True, eq=False)
class Reasons(Serial):
    """The reasons of rows. ``differences.sum(axis=1) = score - reference_score``, up to rounding.

    Margins are positive where the order survives. ``places`` say by how much a reason counts more than every feature
    behind it, ``listed`` by how much it counts more than every feature that is not listed: in the worst member, for any
    values within the tolerance, and in any context. Slicing returns the reasons of some rows.
    """

    type_name: ClassVar[str] = "reasons"

    outcome: str
    title: str  # what the differences are changes of
    measure: str  # what the prediction is called
    reference: str
    unit: str
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    n_members: int
    tolerance: Array  # (feature,), by how much a number may be off; 0 for exact ones
    wording: Wording
    rows: IntArray  # (row,), the number of each row, from 0
    columns: tuple[AnyArray, ...]  # the rows as they were given, one array per feature
    score: Array  # (row,), in the unit of the differences
    reference_score: Array  # (row,)
    prediction: Array  # (row,)
    reference_prediction: Array  # (row,)
    differences: Array  # (row, feature), how much more a feature counts for the outcome than in the reference
    own: Array  # (row, feature), the part of the difference that is due to the feature's own value
    features: IntArray  # (row, reason), the features that count most; -1 where there are fewer
    margin: Array  # (row, reason), how much more a reason counts than the next feature, and than nothing
    places: Array  # (row, reason, test), by how much a reason keeps its place; NaN for a test that was not asked for
    listed: Array  # (row, reason, test), by how much it stays listed
    found: Array  # (row, reason), the smallest margin of the values that were tried within the tolerance
    agreeing: IntArray  # (row, reason), how many members give the reason its place
    resolution: Array  # (row,), the largest difference that counts as none

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        title = f"Reasons({counted(len(self), 'row')}, towards {self.outcome}, compared with {self.reference})"
        table = self.columns_of_reasons
        shown_names = ("row", "feature", "value", "difference", "own", "context", "margin")
        few: dict[str, Any] = {name: list(table[name]) for name in shown_names}
        few |= {name: [str(item) for item in few[name]] for name in ("row", "value")}
        return digest(title, few, "to_frame(), text") if few["row"] else f"{title}: none"

    def __getitem__(self, rows: int | slice | Sequence[int] | AnyArray) -> "Reasons":
        picked = [rows] if isinstance(rows, (int, np.integer)) else rows
        if isinstance(rows, (int, np.integer)) and not -len(self) <= rows < len(self):
            raise UserError(f"A row must be in [0, {len(self) - 1}]; got {rows}.")
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        for key in _PER_ROW:
            value = content[key]
            content[key] = tuple(one[picked] for one in value) if isinstance(value, tuple) else value[picked]
        return Reasons(**content)

    @property
    def context(self) -> Array:
        """The part of each difference that is due to the other features, (row, feature)."""
        return self.differences - self.own

    @property
    def tied(self) -> BoolArray:
        """Whether a reason counts no more than the next feature that counts at all, (row, reason)."""
        return self._is_reason & (self.margin <= self.resolution[:, None])

    @property
    def _is_reason(self) -> BoolArray:
        return np.asarray(self.features >= 0)

    def ranked(self, row: int) -> list[int]:
        """Return the features of a row that may be named, the one that counts most first."""
        order = np.argsort(-self.differences[row], kind="stable").tolist()
        return [i for i in order if self.wording.of(self.feature_names[i]).named]

    def names(self, row: int) -> tuple[str, ...]:
        """Return the features that are the reasons of a row, the one that counts most first."""
        return tuple(self.feature_names[i] for i in self.features[row] if i >= 0)

    def unnamed(self, row: int) -> tuple[str, ...]:
        """Return the features that would be reasons of a row, but must not be named."""
        hidden = [i for i, name in enumerate(self.feature_names) if not self.wording.of(name).named]
        kept = self.features[row][self.features[row] >= 0]
        is_full = len(kept) == self.features.shape[1]
        least = self.differences[row, kept[-1]] if is_full and len(kept) else self.resolution[row]
        return tuple(self.feature_names[i] for i in hidden if self.differences[row, i] > least)

    def sentences(self, row: int) -> tuple[str, ...]:
        """Return a sentence for each reason of a row. If remarks are wanted, it says what the order survives."""
        n = int(self._is_reason[row].sum())
        ends = [remark(self, row, at) if self.wording.remarks else "" for at in range(n)]
        return tuple(f"{sentence(self, row, at)} {end}".rstrip() for at, end in enumerate(ends))

    @property
    def text(self) -> str:
        """The reasons of all rows in words."""
        return "\n\n".join(self._paragraph(row) for row in range(len(self)))

    def _paragraph(self, row: int) -> str:
        found = [f"  {rank}. {line}" for rank, line in enumerate(self.sentences(row), start=1)]
        none = f"  No feature counts towards {self.wording.outcome(self.outcome)} more than for {self.reference}."
        return "\n".join([header(self, row), *(found or [none]), *unnamed_note(self, row)])

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per reason."""
        return make_frame(self.columns_of_reasons, backend)

    @property
    def columns_of_reasons(self) -> dict[str, Any]:
        """The columns of the data frame by name, one entry per reason."""
        row, at = np.nonzero(self._is_reason)
        feature = self.features[row, at]
        texts = [shown(column) for column in self.columns]
        columns: dict[str, Column] = {
            "row": self.rows[row],
            "rank": at + 1,
            "feature": [self.feature_names[i] for i in feature],
            "value": [texts[i][r] for r, i in zip(row.tolist(), feature.tolist(), strict=True)],
            "difference": self.differences[row, feature],
            "own": self.own[row, feature],
            "context": self.context[row, feature],
            "margin": self.margin[row, at],
            "tied": self.tied[row, at].tolist(),
            "members_agreeing": self.agreeing[row, at],
        }
        for test, name in enumerate(TESTS):
            columns |= {f"place_{name}": self.places[row, at, test], f"listed_{name}": self.listed[row, at, test]}
        return columns | {"noise_found": self.found[row, at]}
