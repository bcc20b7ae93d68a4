"""Laws of every model that was loaded or fitted, checked on rows with every kind of cell."""

import numpy as np

from benchmarks.fuzz.targets import Violation
from nae._typing import AnyArray
from nae.encoding import Category, Columns, Feature
from nae.errors import FormatError
from nae.tables import TableModel
from nae.tables.archive import pack, parse_archive
from tests.laws.assertions import assert_bounded, assert_same_model

__all__ = ["check_laws", "check_saved", "odd_rows"]

_LARGEST = float(np.finfo(np.float64).max)


def odd_rows(model: TableModel, random: np.random.Generator, n_rows: int = 8) -> Columns:
    """Return rows with known, in-between, out-of-range, infinite, missing and unseen values."""
    columns = [_odd_values(feature, random, n_rows) for feature in model.schema.features]
    return Columns(tuple(columns), model.feature_names)


def check_laws(model: TableModel, rows: Columns) -> None:
    """Check that predictions are finite, and that scores are sums of contributions within their bounds."""
    found = model.contributions(rows)
    assert_bounded(found)
    score, size = model.decision_function(rows), np.abs(found.values).sum(axis=1) + np.abs(found.intercept)
    if not np.all(np.abs(found.score - score) <= 1e-9 * size):
        raise Violation("contributions and intercept do not make up the score")
    if model.classes:
        probability = model.predict_proba(rows)
        if not (np.all((probability >= 0) & (probability <= 1)) and np.allclose(probability.sum(axis=1), 1)):
            raise Violation("probabilities are not numbers from 0 to 1 that add up to 1")
        if not set(model.predict(rows).tolist()) <= set(model.classes):
            raise Violation("a predicted class is none of the model's")
    elif np.isnan(np.asarray(model.predict(rows), dtype=np.float64)).any():
        raise Violation("a prediction is not a number")


def check_saved(model: TableModel) -> None:
    """Check that the model is the same to the last bit after saving and loading."""
    try:
        content = pack(model)
    except FormatError as error:
        raise Violation(f"a model cannot be saved: {error}") from error
    assert_same_model(parse_archive(content)[0], model)


def _odd_values(feature: Feature, random: np.random.Generator, n_rows: int) -> AnyArray:
    if isinstance(feature, Category):
        options = np.array([*feature.levels[:20], *feature.rare[:5], "never seen", None], dtype=object)
        return options[random.integers(len(options), size=n_rows)]
    knots = feature.knots
    ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, _LARGEST, -_LARGEST, 5e-324, *knots[:3], *knots[-3:]]
    at = random.integers(len(knots), size=4)
    part = random.random(4)
    inside = knots[at] * part + knots[at - 1] * (1 - part)
    return np.concatenate([ends, inside])[random.integers(len(ends) + 4, size=n_rows)]
