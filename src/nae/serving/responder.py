"""A model that is ready to answer: everything that requests need is prepared once per version of its file."""

from dataclasses import dataclass
from typing import Any

from nae.monitoring import can_compare
from nae.serving.answers import encode, explain_rows, predict_rows
from nae.serving.doubts import doubts_of
from nae.serving.limits import Limits
from nae.serving.openapi import row_schema
from nae.serving.reasons import outcome_named, reasons_of
from nae.serving.registry import ServedModel
from nae.serving.rows import RowReader
from nae.serving.watch import Watch

__all__ = ["Responder", "make_responder"]


@dataclass(frozen=True, eq=False)
class Responder:
    """From the body of a request to the body of the answer."""

    served: ServedModel
    schema: bytes
    card: bytes
    _predicted: RowReader
    _explained: RowReader
    watch: Watch | None = None  # of the rows that were asked for a prediction

    def predict(self, body: bytes, *, interval: float | None = None, classes: float | None = None) -> tuple[bytes, int]:
        """Return the answer and how many rows it is about; with intervals or sets of a coverage, if asked for."""
        rows = self._predicted.read(body)
        model = self.served.model
        asks_more = interval is not None or classes is not None
        if len(rows) == 1 and not asks_more:  # a single record is read in a faster way
            cells = model.cells({name: rows[0].get(name) for name in model.feature_names})
        else:
            cells = model.cells(self._predicted.columns(rows))
        content = predict_rows(model, cells)
        if asks_more:
            content |= doubts_of(model, self._predicted.columns(rows), interval=interval, classes=classes)
        answer = self._answer(content)
        if self.watch is not None:
            self.watch.add(rows)
        return answer, len(rows)

    def explain(self, body: bytes, *, n_causes: int, unit: str = "score") -> tuple[bytes, int]:
        """Return the answer and how many rows it is about."""
        rows = self._explained.read(body)
        columns = self._explained.columns(rows)
        return self._answer(explain_rows(self.served.model, columns, rows, n_causes=n_causes, unit=unit)), len(rows)

    def reasons(self, body: bytes, *, toward: str | None, **asked: Any) -> tuple[bytes, int]:
        """Return the reasons of rows, and how many rows they are about."""
        rows, model = self._explained.read(body), self.served.model
        found = model.reasons(self._explained.columns(rows), **outcome_named(model, toward), **asked)
        return self._answer(reasons_of(found, rows)), len(rows)

    def _answer(self, content: dict[str, Any]) -> bytes:
        return encode({"model": self.served.name, "version": self.served.version, **content})


def make_responder(served: ServedModel, limits: Limits, *, watches_drift: bool = False) -> Responder:
    """Prepare the responder of a model. A model without statistics, or with class weights, is not watched."""
    head = {"name": served.name, "version": served.version}
    predicted = RowReader(served.model.schema, max_rows=limits.max_rows)
    is_watched = watches_drift and can_compare(served.model)
    return Responder(
        served=served,
        schema=encode(row_schema(served.model)),
        card=encode({**head, **served.card.to_dict()}),
        _predicted=predicted,
        _explained=RowReader(served.model.schema, max_rows=limits.max_explained_rows),
        watch=Watch(served.model, predicted.columns) if is_watched else None,
    )
