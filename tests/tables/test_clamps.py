"""Clamps: contributions and bounds stay within them, whatever becomes of the model."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from nae.encoding import Cells, Columns
from nae.tables import Clamps, TableModel
from nae.tables.lookup import interpolate
from tests.laws.drawn import models_with_tables
from tests.laws.models import clamped, make_model, make_table


def shaped(model: TableModel, values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), model.n_features, model.n_outputs)


@given(models_with_tables(may_clamp=True))
def test_contributions_and_bounds_are_those_of_the_experts_within_the_clamps(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    model = model if model.clamps is not None else clamped(model, np.random.default_rng(0))
    free, found = replace(model, clamps=None).contributions(table), model.contributions(table)
    lower, upper = (interpolate(own, model.cells(table)) for own in (model.clamps.lower, model.clamps.upper))
    for name in ("values", "lower", "upper"):
        inside = np.minimum(np.maximum(shaped(model, getattr(free, name)), lower), upper)
        np.testing.assert_array_equal(shaped(model, getattr(found, name)), inside)


@given(models_with_tables(may_clamp=True), st.integers(0, 2**16))
def test_clamps_of_the_slot_bounds_change_nothing(drawn: tuple[TableModel, Columns], seed):
    model, table = drawn
    free = replace(model, clamps=None)
    wide = replace(free, clamps=Clamps(*free.slot_bounds))
    rounding = 8 * np.finfo(model.experts.dtype).eps * np.abs(model.experts).max()
    np.testing.assert_allclose(wide.contributions(table).values, free.contributions(table).values, atol=rounding)


def test_the_mirrored_model_has_mirrored_contributions():
    model = make_model(np.random.default_rng(3), link="logit", is_clamped=True)
    table = make_table(np.random.default_rng(4), model.schema, 50)
    found, mirrored = (model.for_class(name).contributions(table) for name in ("yes", "no"))
    np.testing.assert_array_equal(mirrored.values, 0 - found.values)
    np.testing.assert_array_equal(mirrored.lower, 0 - found.upper)


def test_ends_that_rounding_has_crossed_leave_the_upper_one():
    clamps = Clamps(np.array([[1.0]]), np.array([[0.5]]))
    cell = Cells(np.zeros((3, 1), dtype=np.int32), np.zeros((3, 1)))
    found = clamps.clip(np.array([[[0.0]], [[0.7]], [[2.0]]]), cell)
    np.testing.assert_array_equal(found.ravel(), [0.5, 0.5, 0.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clamps_move_with_the_contributions(dtype):
    model = make_model(np.random.default_rng(5), dtype=dtype, is_clamped=True)
    by = np.random.default_rng(6).standard_normal(model.clamps.lower.shape)
    moved = replace(
        model, experts=(model.experts + by[:, None, :, None]).astype(dtype), clamps=model.clamps.shifted(by)
    )
    assert moved.clamps.lower.dtype == dtype
    cells = model.cells(make_table(np.random.default_rng(7), model.schema, 40))
    shift = interpolate(by, cells)
    expected = shaped(model, model.contributions(cells).values) + shift
    np.testing.assert_allclose(shaped(model, moved.contributions(cells).values), expected, atol=1e-5)
