"""The evidence for the effects of a fit, from all its training rows."""

import numpy as np

from nae.estimators.heldout import outcomes_of
from nae.estimators.prepared import Prepared
from nae.tables.model import TableModel
from nae.training import TrainingRows
from nae.uncertainty.effects import EffectRows, measure_effects

__all__ = ["remember_evidence"]


def remember_evidence(model: TableModel, prepared: Prepared) -> TableModel:
    """Return the same model with the evidence for its effects; without it where the rows are not in one place."""
    sources = [source.whole() for source in prepared.sources]
    if not prepared.task.scale.spread.all():
        return model
    found = [_rows_of(model, rows, prepared) for rows in sources if rows is not None]
    if len(found) < len(sources):
        return model
    return measure_effects(model, EffectRows.joined(found))


def _rows_of(model: TableModel, rows: TrainingRows, prepared: Prepared) -> EffectRows:
    nothing = np.zeros((len(rows), model.n_outputs))
    known = outcomes_of(model, rows, nothing, prepared)
    return EffectRows(known.cells, known.truth, known.score, known.weight)
