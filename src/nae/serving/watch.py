"""Drift of the rows that were asked for a prediction, as metrics of the server."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nae.encoding.columns import Columns
from nae.monitoring import Drift, FeatureDrift, Tally, judge
from nae.serving.counters import escape, head
from nae.tables.model import TableModel

__all__ = ["Watch", "drift_lines"]

_MOST_WAITING = 256  # rows that wait to be tallied together, which takes much less time than one by one


class Watch:
    """Sums over the rows of all requests, in a bounded amount of memory. Requests in threads may share it."""

    def __init__(self, model: TableModel, read: Callable[[list[dict[str, Any]]], Columns]) -> None:
        self._read, self._tally = read, Tally(model)
        self._waiting: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Add the rows of a request."""
        with self._lock:
            self._waiting += rows
            if len(self._waiting) >= _MOST_WAITING:
                self._settle()

    def drift(self) -> Drift | None:
        """Return the drift of the rows so far; None before the first one."""
        with self._lock:
            self._settle()
            return judge(self._tally) if self._tally.n_rows else None

    def _settle(self) -> None:
        if self._waiting:
            self._tally.add(self._read(self._waiting))
            self._waiting = []


_OF_FEATURES: tuple[tuple[str, str, Callable[[FeatureDrift], float]], ...] = (
    ("nae_drift", "Whether the feature drifted: 1 or 0.", lambda one: float(one.verdict == "drifted")),
    ("nae_drift_psi", "Population stability index of the feature's values.", lambda one: one["values"].size),
    ("nae_drift_psi_by_chance", "The index expected if nothing changed.", lambda one: one["values"].chance),
    ("nae_drift_missing_share", "Share of rows without a value.", lambda one: one["missing"].now),
    ("nae_drift_new_share", "Share of rows with a new level or a number out of range.", lambda one: one.new_share),
    (
        "nae_drift_contribution",
        "Move of the mean contribution, in standard deviations of the training score.",
        lambda one: one.contribution.size,
    ),
)
_OF_MODELS: tuple[tuple[str, str, Callable[[Drift], float]], ...] = (
    ("nae_drift_rows", "Rows of requests that are compared with the training rows.", lambda one: one.n_rows),
    (
        "nae_drift_score",
        "Move of the mean score, in standard deviations of the training score.",
        lambda one: max(check.size for check in one.score),
    ),
)


def drift_lines(found: Mapping[str, Drift]) -> Iterator[str]:
    """Yield the drift of every model as lines in the text format of Prometheus."""
    if not found:
        return
    for name, text, value in _OF_MODELS:
        yield from head(name, "gauge", text)
        yield from (f'{name}{{model="{escape(model)}"}} {value(drift):.6g}' for model, drift in found.items())
    for name, text, of in _OF_FEATURES:
        yield from head(name, "gauge", text)
        for model, drift in found.items():
            label = f'model="{escape(model)}"'
            yield from (f'{name}{{{label},feature="{escape(one.name)}"}} {of(one):.6g}' for one in drift)
