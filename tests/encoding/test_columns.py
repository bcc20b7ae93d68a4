"""Columns as numbers and as category keys."""

import decimal

import numpy as np
import pandas as pd
import pytest

from nae.encoding import Columns
from nae.encoding.columns import category_keys, is_missing, numbers
from nae.errors import DataError


def objects(*values: object) -> np.ndarray:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def test_one_is_one_whether_a_number_or_text():
    keys = category_keys(objects(1, 1.0, np.int64(1), np.float32(1), "1", decimal.Decimal(1)))
    assert set(keys) == {"1"}


def test_truth_is_not_one():
    assert category_keys(objects(True, np.False_)).tolist() == ["True", "False"]
    assert category_keys(np.array([True, False])).tolist() == ["True", "False"]


def test_keys_of_numbers_are_short():
    assert category_keys(np.array([1.0, 2.5, -0.0, np.nan])).tolist() == ["1", "2.5", "0", None]
    assert category_keys(np.empty(0)).tolist() == []


def test_keys_of_single_precision_have_its_digits():
    single = np.array([0.1, -2.7, 16777216.0, np.nan], dtype=np.float32)
    assert category_keys(single).tolist() == ["0.1", "-2.7", "16777216", None]
    assert category_keys(objects(*single, "0.1")).tolist() == ["0.1", "-2.7", "16777216", None, "0.1"]


def test_whatever_is_missing_has_no_key():
    column = objects(None, np.nan, pd.NA, pd.NaT, "nan", "")
    assert is_missing(column).tolist() == [True, True, True, True, False, False]
    assert category_keys(column).tolist() == [None, None, None, None, "nan", ""]


def test_objects_become_numbers_and_missing_becomes_nan():
    found = numbers(objects(1, "2.5", True, None, pd.NA, decimal.Decimal("0.5")), "a")
    np.testing.assert_array_equal(found, [1, 2.5, 1, np.nan, np.nan, 0.5])


def test_text_among_numbers_is_an_error_that_names_column_row_and_remedy():
    match = "Column 'a' must hold numbers; row 2 holds 'two'. Pass feature_types={'a': 'category'}"
    with pytest.raises(DataError, match=match):
        numbers(objects(1, None, "two"), "a")


def test_rows_are_counted_as_the_caller_does():
    with pytest.raises(DataError, match="row 70 holds 'two'"):
        numbers(objects(1, "two"), "a", where=lambda row: f"row {(60, 70)[row]}")


@pytest.mark.parametrize("digits", [400, 5000])  # from some length on, python does not write them out
def test_a_number_beyond_all_floats_is_an_error(digits):
    with pytest.raises(DataError, match=r"row 1 holds a whole number of \d+ bits, beyond the largest float"):
        numbers(objects(1, 10**digits), "a")


def test_long_values_are_cut_short_in_errors():
    with pytest.raises(DataError) as caught:
        numbers(objects("word " * 1000), "a")
    assert len(str(caught.value)) < 200


def test_a_missing_column_is_an_error_with_the_nearest_name():
    columns = Columns((np.zeros(1),), ("ages",))
    with pytest.raises(DataError, match=r"The table must have the column 'age' .* Did you mean 'ages'"):
        columns.select(["age"])


def test_where_no_name_is_near_the_columns_of_the_model_and_of_the_table_are_told_apart():
    columns = Columns((np.zeros(1), np.ones(1)), ("a", "c"))
    sentence = "The table must have the column 'price' .* The model knows 'a', 'price'; the table has 'a', 'c'."
    with pytest.raises(DataError, match=sentence):
        columns.select(["a", "price"])
    with pytest.raises(DataError, match=r"The model knows 'a'; the table has none\."):
        Columns((), ()).select(["a"])


def test_columns_are_selected_by_name_and_extra_ones_left_out():
    columns = Columns((np.zeros(1), np.ones(1), np.full(1, 2.0)), ("a", "b", "c"), frozenset({2}))
    found = columns.select(["c", "a"])
    assert [array[0] for array in found.arrays] == [2, 0]
    assert found.names == ("c", "a")
    assert found.categorical == {0}


def test_columns_without_names_are_left_in_order():
    columns = Columns((np.zeros(1), np.ones(1)))
    assert columns.select(["b", "a"]) is columns
