"""No value within limits has a contribution outside of its bounds; without limits they are the contribution."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from nae.encoding import Columns, Number
from nae.encoding.cells import Cells
from nae.ranges import Span, bounds_near
from nae.tables import TableModel
from tests.laws.drawn import models_with_tables

DIGITS = 1e-9


def spans_of(model: TableModel, cells: Cells, random: np.random.Generator, *, width: float) -> list[Span]:
    """Return limits around the rows' numbers; missing values have none."""
    found = []
    for i, feature in enumerate(model.schema.features):
        place = cells.slot[:, i] + cells.fraction[:, i].astype(np.float64) - model.schema.offsets[i]
        if not isinstance(feature, Number) or feature.is_empty or random.integers(3) == 0:
            continue
        away = width * random.uniform(0, 1, (2, len(cells))) * feature.n_values
        is_number = place <= feature.n_values - 1
        low, high = (np.clip(end, 0, feature.n_values - 1) for end in (place - away[0], place + away[1]))
        found.append(Span(i, np.where(is_number, low, place), np.where(is_number, high, place)))
    return found


def moved(model: TableModel, cells: Cells, spans: list[Span], random: np.random.Generator) -> Cells:
    """Return the rows with values within the limits, often at an end."""
    slot, fraction = cells.slot.astype(np.int64).copy(), cells.fraction.astype(np.float64).copy()
    for span in spans:
        share = random.choice([0.0, 1.0, random.uniform()], len(cells))
        place = span.low + share * (span.high - span.low) + model.schema.offsets[span.feature]
        slot[:, span.feature] = np.floor(place)
        fraction[:, span.feature] = place - np.floor(place)
    return Cells(slot, fraction)


@settings(max_examples=60)
@given(models_with_tables(may_clamp=True), st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.3, 2.0]))
def test_no_value_within_the_limits_leaves_the_bounds(
    drawn: tuple[TableModel, Columns], seed: int, width: float
) -> None:
    model, random = drawn[0], np.random.default_rng(seed)
    cells = model.cells(drawn[1])
    spans = spans_of(model, cells, random, width=width)
    lower, upper = bounds_near(model, cells, spans)
    slack = (
        DIGITS * (1 + np.abs(upper).max()) if model.experts.dtype == np.float64 else 1e-4 * (1 + np.abs(upper).max())
    )
    for _ in range(10):
        found = model.contributions(moved(model, cells, spans, random)).values.reshape(lower.shape)
        assert np.all(found >= lower - slack)
        assert np.all(found <= upper + slack)


@settings(max_examples=30)
@given(models_with_tables(may_clamp=True))
def test_without_limits_the_bounds_are_the_contribution(drawn: tuple[TableModel, Columns]) -> None:
    model, cells = drawn[0], drawn[0].cells(drawn[1])
    lower, upper = bounds_near(model, cells, [])
    values = model.contributions(cells).values.reshape(lower.shape)
    is_double = model.experts.dtype == np.float64
    if model.routing.n_active == model.n_experts or is_double:
        slack = (DIGITS if is_double else 1e-4) * (1 + np.abs(upper).max())
        np.testing.assert_allclose(lower, values, atol=slack)
        np.testing.assert_allclose(upper, values, atol=slack)
