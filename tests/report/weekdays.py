"""A small model of features with few values, and rows that have no working Sunday."""

from typing import Any

import numpy as np

from nae.encoding import Category, Columns, Number
from nae.explanation import with_statistics
from nae.tables import TableModel
from tests.laws.models import make_model

__all__ = ["AGES", "FEATURES", "weekday_model"]

AGES = np.array([1.0, 3, 7, 14, 28, 56, 90, 91, 100, 120, 180, 270, 360, 365])
FEATURES = (
    Number("weekday", np.arange(7.0), integral=True),
    Number("workingday", np.array([0.0, 1.0]), integral=True),
    Number("age", AGES, integral=True),
    Number("temp", np.linspace(0.0, 1.0, 61), has_missing=True),
    Category("kind", ("missing", "other", "plain"), rare=("odd", "odder")),
)


def weekday_model(*, scale: float = 1.0, n_rows: int = 700, **shape: Any) -> tuple[TableModel, Columns]:
    """Return a random model, ``scale`` of its logits, with statistics of rows, and the rows."""
    random = np.random.default_rng(0)
    day = np.arange(n_rows) % 7.0
    temp = random.uniform(0.0, 1.0, n_rows)
    temp[:5] = np.nan
    columns = Columns(
        (
            day,
            ((day > 0) & (day < 6)).astype(float),
            random.choice(AGES[:8], n_rows),
            temp,
            random.choice(np.array(["missing", "other", "plain", "odd"], dtype=object), n_rows),
        ),
        tuple(feature.name for feature in FEATURES),
    )
    model = make_model(random, features=FEATURES, scale=scale, **shape)
    return with_statistics(model, columns), columns
