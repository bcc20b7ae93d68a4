"""The last steps of every edit: balance, statistics, promises, what it changed, and the record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nae.editing.promises import joined, settled
from nae.editing.record import Edit, finite, tables_digest
from nae.editing.rows import EditRows
from nae.errors import ConfigError
from nae.explanation.comparison import compare
from nae.quality import Quality
from nae.tables.model import TableModel
from nae.tables.summary import TrainingSummary

__all__ = ["Entry", "settle"]

_LIMITS = ("cap", "monotone")  # a model that keeps them already needs no edit


@dataclass(frozen=True)
class Entry:
    """What was asked for, by whom, when and why."""

    what: str
    feature: str
    arguments: dict[str, Any]
    who: str
    why: str
    when: str

    @property
    def gained(self) -> Mapping[str, Any]:
        """What the edit promises. With more than two classes, a cap is about the log-odds of any two."""
        one, listed = self.feature, [self.feature]
        gained: dict[str, dict[str, Any]] = {
            "pin": {"max_effect": {one: 0.0}, "isolated": listed},
            "drop": {"max_effect": {one: 0.0}, "isolated": listed, "unchanged": listed},
            "cap": {"max_effect": {one: self.arguments.get("limit")}},
            "monotone": {"monotone": {one: self.arguments.get("way")}},
        }
        return gained.get(self.what, {})

    def holds(self, model: TableModel) -> bool:
        """Return whether a model is proven to keep all that a cap or a direction asks for, so that nothing changes."""
        return self.what in _LIMITS and not settled(model, self.gained).dropped


def settle(before: TableModel, changed: TableModel, rows: EditRows | None, entry: Entry) -> TableModel:
    """Return the edited model with the edit in its record."""
    if not all(np.isfinite(array).all() for array in (changed.experts, changed.gate.terms)):
        raise ConfigError(f"An edit must leave finite numbers; {entry.what} of {entry.feature!r} does not.")
    model = changed
    if changed is not before or rows is not None:
        model = replace(
            changed, statistics=None, residuals=None, evidence=None, training=_without_stale(changed.training)
        )
    if rows is not None:
        model = rows.described(rows.balanced(model))
    if model.training.levels:
        model = _quantiles_apart(model)
    promises = settled(model, joined(before.training.constraints or {}, entry.gained))
    model = replace(model, training=replace(model.training, constraints=promises.kept or None))
    found = compare(before, model).certificate()
    edit = Edit(
        what=entry.what,
        feature=entry.feature,
        arguments=entry.arguments,
        who=entry.who,
        when=entry.when,
        why=entry.why,
        before=tables_digest(before),
        after=tables_digest(model),
        bound=finite(found.bound),
        found=found.found,
        is_balanced=rows is not None and rows.known is not None,
        proven=promises.proven,
        dropped=promises.dropped,
        **_on_rows(before, model, rows),
    )
    edits = (*(before.training.edits or ()), edit.to_entry())
    return replace(model, training=replace(model.training, edits=edits))


def _on_rows(before: TableModel, after: TableModel, rows: EditRows | None) -> dict[str, Any]:
    if rows is None:
        return {}
    moved = np.abs(rows.moved(before, after))
    return {
        "n_rows": len(rows),
        "mean_change": float(np.average(moved, axis=0, weights=rows.weight).max()),
        "largest_change": float(moved.max()),
        "quality_before": _values(rows.measured(before)),
        "quality_after": _values(rows.measured(after)),
    }


def _values(quality: Quality | None) -> dict[str, float] | None:
    return None if quality is None else {one.name: one.value for one in quality}


def _without_stale(training: TrainingSummary) -> TrainingSummary:
    """Return the summary without what was measured of the model before, its balance included."""
    return replace(
        training,
        intercept_shift=None,
        additivity=None,
        validation_loss=None,
        table_error=None,
        n_test_rows=None,
        quality=None,
        baseline_quality=None,
        quality_intervals=None,
        intervals=None,
    )


def _quantiles_apart(model: TableModel) -> TableModel:
    """Return the model with its intercepts as far apart as its quantiles need, so that no input makes them cross."""
    from nae.training.ordering import moved_apart

    return moved_apart(model)
