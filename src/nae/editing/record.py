"""The record of edits: what was changed, by whom, when and why, and what it did. A model file keeps it."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from nae.errors import FormatError
from nae.explanation.inputs import rounded_up
from nae.tables.archive import describe
from nae.tables.model import TableModel

__all__ = ["Edit", "history", "tables_digest"]

_TABLES = ("schema", "gate", "routing", "link", "outputs", "classes")


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One edit. Numbers are in units of the score; of several outputs, the largest counts."""

    what: str
    """The method of the editor: pin, smooth, monotone, cap, drop or set_level."""
    feature: str
    arguments: Mapping[str, Any]
    who: str
    when: str
    """The time in UTC, as ISO 8601 writes it."""
    why: str
    before: str
    """A SHA-256 of the tables that were edited."""
    after: str
    """The same of the tables that were made."""
    bound: float | None
    """The most by which any score changed, for any input, proven; None if it is not finite."""
    found: float
    """The largest change of a score that a search found."""
    n_rows: int | None = None
    """The number of rows that were given; None without rows."""
    mean_change: float | None = None
    """The mean size of the change of the score on the rows."""
    largest_change: float | None = None
    quality_before: Mapping[str, float] | None = None
    """Measures on the rows by name; None without a target."""
    quality_after: Mapping[str, float] | None = None
    is_balanced: bool = False
    """Whether the intercept was solved again on the rows. If not, totals need not match any longer."""
    proven: tuple[str, ...] = ()
    """What is proven about the edited model."""
    dropped: tuple[str, ...] = ()
    """The promises that the edited model does not keep, or that could not be proven."""

    @staticmethod
    def of(entry: Mapping[str, Any]) -> "Edit":
        """Return the edit that a file holds. Entries of a newer version are left out."""
        known = {item.name for item in fields(Edit)}
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
        }
        try:
            return Edit(**{name: value for name, value in given.items() if name in known})
        except TypeError as error:
            raise FormatError(f"An edit in the record lacks an entry ({error}).") from error

    def to_entry(self) -> dict[str, Any]:
        """Return the edit as JSON values, without those that are None."""
        found = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def title(self) -> str:
        """What was done: ``cap postcode (limit=0.05)``."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.what} {self.feature}{f' ({given})' if given else ''}"

    @property
    def summary(self) -> str:
        """What was done, by whom, when and why."""
        return f"{self.title}, by {self.who}, {self.when}: {self.why}"

    @property
    def text(self) -> str:
        """The edit in sentences."""
        end = "" if self.why[-1:] in ".!?" else "."
        return " ".join([f"{self.summary}{end}", *self.effects])

    @property
    def effects(self) -> list[str]:
        """What the edit did, a sentence each."""
        bound = "by an unknown amount" if self.bound is None else f"by at most {rounded_up(self.bound)}"
        sentences = [f"Any score changes {bound}; the largest change found is {self.found:.4g}."]
        if self.n_rows is not None and self.mean_change is not None and self.largest_change is not None:
            size = f"by {self.mean_change:.4g} on average and by {self.largest_change:.4g} at most"
            sentences.append(f"On {self.n_rows:,} rows, it changes {size}.")
        sentences += self._quality()
        if self.is_balanced:
            sentences.append("The intercept was solved for again on these rows.")
        else:
            sentences.append("The intercept was kept, so predictions need not add up to the targets any longer.")
        return [*sentences, *(f"Proven: {claim}" for claim in self.proven), *self.dropped]

    def _quality(self) -> list[str]:
        if self.quality_before is None or self.quality_after is None:
            return []
        pairs = [(name, value, self.quality_after.get(name)) for name, value in self.quality_before.items()]
        shown = [f"{name} {old:.4g} → {new:.4g}" for name, old, new in pairs if new is not None]
        return [f"Quality on these rows: {', '.join(shown)}."]


def history(model: TableModel) -> tuple[Edit, ...]:
    """Return the edits that made a model, the first one first."""
    return tuple(Edit.of(entry) for entry in model.training.edits or ())


def finite(value: float) -> float | None:
    """Return a number that JSON can hold, or None."""
    return float(value) if math.isfinite(value) else None


def tables_digest(model: TableModel) -> str:
    """Return a SHA-256 of everything that a model's answers follow from."""
    header, _ = describe(model)
    arrays = {
        name: entry
        for name, entry in header["arrays"].items()
        if not name.startswith(("statistics.", "residuals.", "evidence."))
    }
    content = {name: header[name] for name in _TABLES} | {"arrays": arrays}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
