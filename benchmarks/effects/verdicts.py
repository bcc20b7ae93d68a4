"""The verdict alone: how often an idle feature is taken for more than noise, on many tables without a network."""

import numpy as np

from benchmarks.effects.simulations import Case, Drawn, draw
from nae.encoding import build_schema, read_table
from nae.explanation import with_statistics
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel
from nae.uncertainty.effects import EffectRows, measure_effects

__all__ = ["chances", "untrained"]

_KNOTS = 64
_LINKS = {"squared": "identity", "logistic": "logit", "poisson": "log"}


def chances(case: Case, seed: int) -> tuple[list[float], list[float]]:
    """Return the chances of idle features and of all others of a drawn table, for a model that has learned nothing."""
    drawn = draw(case, seed)
    model, n_rows = untrained(drawn, case.loss), len(drawn.y)
    truth = (drawn.y == "yes") if case.loss == "logistic" else drawn.y
    nothing = np.zeros((n_rows, 1))
    rows = EffectRows(model.cells(drawn.X), truth.astype(np.float64)[:, None], nothing, np.ones(n_rows))
    evidence = measure_effects(model, rows).evidence
    assert evidence is not None
    found = dict(zip(model.feature_names, evidence.chance[:, 0].tolist(), strict=True))
    idle = [found[name] for name in found if name in drawn.idle]
    return idle, [found[name] for name in found if name not in drawn.idle]


def untrained(drawn: Drawn, loss: str) -> TableModel:
    """Return a model of two experts without any effect, with the statistics of a table."""
    columns = read_table(drawn.X)
    kinds = [("category" if array.dtype == object else "number", "") for array in columns.arrays]
    schema = build_schema(columns, kinds, np.ones(columns.n_rows), n_knots=_KNOTS)
    width = 2 * len(schema)
    model = TableModel(
        schema=schema,
        experts=np.zeros((schema.n_slots, 2, 1, 1)),
        gate=GateTables("additive", np.zeros((schema.n_slots, width, 1)), np.zeros((width, 1))),
        routing=SoftmaxRouting(2),
        intercept=np.zeros(1),
        link=LINKS[_LINKS[loss]],
        classes=("no", "yes") if loss == "logistic" else (),
    )
    return with_statistics(model, columns).with_training(loss=loss)
