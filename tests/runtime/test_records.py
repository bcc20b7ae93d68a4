"""A single record takes a short way to its cells; it must lead where the long one does."""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from nae.encoding.record import RecordReader
from nae.encoding.schema import Category, Feature, Number, Schema
from nae.errors import DataError
from tests.laws.models import make_model, make_table

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(width=64),
    st.sampled_from(["level 0", "level 1", "rare 0", "never", "1", ""]),
    st.just(10**400),
)


@given(st.integers(0, 50), st.data())
def test_a_record_has_the_cells_of_a_table_of_one_row(seed: int, data: st.DataObject) -> None:
    model = make_model(np.random.default_rng(seed), dtype=np.float32)
    record = {name: data.draw(VALUES) for name in model.feature_names}
    short = RecordReader.of(model.schema).read(record, np.float32)
    are_plain = all(is_plain(feature, record[feature.name]) for feature in model.schema.features)
    event(f"all values are plain: {are_plain}")
    assert (short is not None) == are_plain
    if short is not None:
        expected = model.schema.locate(model._explained_columns(record), dtype=np.float32)
        np.testing.assert_array_equal(short.slot, expected.slot)
        np.testing.assert_array_equal(short.fraction, expected.fraction)


def is_plain(feature: Feature, value: object) -> bool:
    """Return whether a value takes the short way: a number that a float can hold, a level, or nothing."""
    if value is None:
        return True
    if isinstance(feature, Category):
        return type(value) is str
    return type(value) in (float, bool) or (type(value) is int and abs(value) < 10**308)


def test_plain_values_take_the_short_way() -> None:
    schema = Schema((Number("x", np.array([0.0, 2.0])), Category("c", ("a", "b"), ("rare",))))
    found = RecordReader.of(schema).read({"c": "b", "x": 0.5, "more": 1}, np.float64)
    assert found is not None
    assert found.slot.tolist() == [[0, 5]]
    assert found.fraction.tolist() == [[0.25, 0.0]]


@pytest.mark.parametrize("record", [{"x": [1.0]}, {}, {"x": "1"}, {"x": np.float32(1)}], ids=str)
def test_anything_else_takes_the_long_way(record: dict[str, object]) -> None:
    schema = Schema((Number("x", np.array([0.0, 2.0])),))
    assert RecordReader.of(schema).read(record, np.float64) is None


@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["large", "small"])
def test_a_number_beyond_the_largest_float_is_refused_in_a_record_as_in_a_table(value: int) -> None:
    model = make_model(np.random.default_rng(0))
    table = make_table(np.random.default_rng(0), model.schema, 1)
    number = next(one.name for one in model.schema.features if isinstance(one, Number))
    record = {name: column[0] for name, column in zip(model.feature_names, table.arrays, strict=True)} | {number: value}
    for given_as in (record, [record]):
        with pytest.raises(DataError, match=rf"Column '{number}' must hold numbers; row 0 holds .* beyond the largest"):
            model.predict(given_as)


def test_a_record_without_a_column_is_an_error_that_names_it() -> None:
    model = make_model(np.random.default_rng(0))
    record = {
        name: column[0]
        for name, column in zip(
            model.feature_names, make_table(np.random.default_rng(0), model.schema, 1).arrays, strict=True
        )
    }
    del record["f1"]
    with pytest.raises(DataError, match="must have the column 'f1'"):
        model.predict(record)
