"""The rows that an edited model is measured and balanced on."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.beside import read_weight
from nae.encoding.cells import Cells
from nae.errors import DataError
from nae.explanation.statistics import gather_statistics
from nae.quality import MeasuredRows, Quality, measure_rows
from nae.quality.rows import read_rows
from nae.tables.model import TableModel
from nae.tables.statistics import slot_weights
from nae.tables.summary import TrainingSummary

__all__ = ["EditRows", "sampled_cells"]

_OF_LINK = {"identity": "squared", "log": "poisson", "logit": "logistic", "softmax": "cross-entropy"}
_SAMPLED = 512


@dataclass(frozen=True, eq=False)
class EditRows:
    """Rows with their weights; and, if the truth is given, those of them whose truth is known."""

    cells: Cells
    weight: Array
    known: MeasuredRows | None

    @staticmethod
    def read(model: TableModel, X: Any, y: Any, sample_weight: Any, offset: Any) -> "EditRows":
        """Return the rows of a table, checked."""
        cells = model.cells(X)
        if len(cells) == 0:
            raise DataError("Edits are measured on rows; the table has none. Leave X out, or give rows.")
        known = None if y is None else read_rows(model, cells, y, sample_weight, offset)
        return EditRows(cells, read_weight(sample_weight, len(cells)), known)

    def __len__(self) -> int:
        return len(self.cells)

    def slot_weight(self, model: TableModel) -> Array:
        """Return how much of the rows lies at each slot."""
        return slot_weights(self.cells, self.weight, model.schema.n_slots)

    def described(self, model: TableModel) -> TableModel:
        """Return the model with the statistics of these rows."""
        return replace(model, statistics=gather_statistics(model, self.cells, self.weight))

    def measured(self, model: TableModel) -> Quality | None:
        """Return the quality of a model on the rows with a truth."""
        if self.known is None:
            return None
        return measure_rows(replace(self.known, model=model), n_resamples=0)

    def balanced(self, model: TableModel) -> TableModel:
        """Return the model with the intercept that balances it on the rows with a truth."""
        from nae.training.balance import balance_again
        from nae.training.data import Scored

        rows = self.known
        if rows is None:
            return model
        loss = _loss_of(model)
        score = model.decision_function(rows.cells, offset=rows.offset).reshape(len(rows.truth), -1)
        target = rows.codes if loss.has_classes else rows.truth
        unit = _unit_of(model.training, rows) if loss.is_scaled else np.ones(model.n_outputs)
        return balance_again(model, Scored(score, target, rows.weight), loss, np.broadcast_to(unit, model.n_outputs))

    def moved(self, before: TableModel, after: TableModel) -> Array:
        """Return the change of every row's scores, (row, output)."""
        one, other = (model.decision_function(self.cells).reshape(len(self), -1) for model in (before, after))
        return np.asarray(other - one)


def sampled_cells(model: TableModel, weight: Array, *, seed: int = 0) -> Cells:
    """Return rows of slots drawn by their weight, every feature by itself: what stands for rows if there are none."""
    random = np.random.default_rng(seed)
    drawn = []
    for i in range(model.n_features):
        slots = np.arange(model.schema.slots(i).start, model.schema.slots(i).stop)
        drawn.append(random.choice(slots, _SAMPLED, p=weight[slots] / weight[slots].sum()))
    return Cells(np.stack(drawn, axis=1), np.zeros((_SAMPLED, model.n_features)))


def _loss_of(model: TableModel) -> Any:
    """Return the loss that a model was fitted to; where it does not know, the one that belongs to its link."""
    from nae.training.losses import make_loss

    training = model.training
    given = {"quantile": training.quantile, "power": training.tweedie_power, "delta": training.huber_delta}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return make_loss(training.loss or _OF_LINK[model.link.name], **options)


def _unit_of(training: TrainingSummary, rows: MeasuredRows) -> Array:
    """Return what targets are divided by, per output or one for all: Huber's loss has its own unit."""
    if training.huber_threshold and training.huber_delta:
        return np.array(training.huber_threshold) / training.huber_delta
    spread = np.sqrt(np.average((rows.truth - rows.truth.mean(axis=0)) ** 2, axis=0, weights=rows.weight))
    return np.where(spread > 0, spread, 1.0)
