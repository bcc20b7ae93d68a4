"""Targets: numbers and classes from whatever holds them."""

import datetime as dt
import tracemalloc
from decimal import Decimal
from enum import StrEnum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nae.encoding.target import names_of, read_classes, read_numbers
from nae.errors import DataError

NUMBERS = {
    "list": [1, 2, 3],
    "array": np.array([1.0, 2.0, 3.0]),
    "pandas": pd.Series([1, 2, 3]),
    "nullable pandas": pd.Series([1, 2, 3], dtype="Int64"),
    "arrow-backed pandas": pd.Series([1, 2, 3], dtype="int64[pyarrow]"),
    "object": np.array([1, 2.0, 3], dtype=object),
    "polars": pl.Series([1, 2, 3]),
    "arrow": pa.chunked_array([[1, 2, 3]]),
    "one column": np.array([[1], [2], [3]]),
}


NUMBERS |= {
    "arrow array": pa.array([1, 2, 3]),
    "arrow decimals": pa.array([Decimal(1), Decimal(2), Decimal(3)]),
    "decimals": [Decimal(1), 2, Decimal(3)],
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_are_read(case):
    found = read_numbers(NUMBERS[case])
    np.testing.assert_array_equal(found.values, [[1], [2], [3]])
    assert found.names == ("score",)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"u": [1, 2], "v": [3, 4]}),
        pl.DataFrame({"u": [1, 2], "v": [3, 4]}),
        pa.table({"u": [1, 2], "v": [3, 4]}),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_several_targets_keep_their_names(table):
    found = read_numbers(table)
    np.testing.assert_array_equal(found.values, [[1, 3], [2, 4]])
    assert found.names == ("u", "v")


def test_several_targets_without_names_are_numbered():
    assert read_numbers(np.zeros((2, 3))).names == ("y0", "y1", "y2")


@pytest.mark.parametrize(
    "series", [pd.Series([1, 2], name="price"), pl.Series("price", [1, 2])], ids=["pandas", "polars"]
)
def test_a_target_keeps_the_name_of_its_series(series):
    assert names_of(series) == ("price",)
    assert read_numbers(series).names == ("price",)
    assert names_of(series, features=("price", "size")) == ()  # computed from a column, whose name it still has


@pytest.mark.parametrize("y", [pd.Series([1, 2]), pd.Series([1, 2], name=0), pl.Series([1, 2]), [1, 2], np.zeros(2)])
def test_a_target_without_a_name_in_words_has_none(y):
    assert names_of(y) == ()
    assert read_numbers(y).names == ("score",)


@pytest.mark.parametrize("read", [read_numbers, read_classes])
def test_a_survival_target_is_called_what_it_is(read):
    y = np.array([(True, 3.5), (False, 2.0)], dtype=[("event", bool), ("time", float)])
    match = r"y must hold numbers or classes; got a structured array with the fields 'event', 'time'\. Survival targets"
    with pytest.raises(DataError, match=match):
        read(y)


def test_text_is_no_number():
    with pytest.raises(DataError, match=r"must hold numbers; got text in row 0, 'a'. Use NAEClassifier"):
        read_numbers(["a", "b"])


@pytest.mark.parametrize(
    "y",
    [
        pd.date_range("2020-01-01", periods=2),
        pd.Series(pd.to_timedelta([1, 2], unit="D")),
        pl.Series([dt.date(2020, 1, 1), None]),
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)],
    ],
    ids=["pandas", "durations", "polars", "objects"],
)
def test_dates_are_no_numbers(y):
    with pytest.raises(DataError, match=r"must hold numbers; got dates or times. Turn them into numbers, such as days"):
        read_numbers(y)


def test_complex_numbers_are_an_error():
    with pytest.raises(DataError, match=r"must hold real numbers\. Complex data not supported"):
        read_numbers(np.array([1j]))


@pytest.mark.parametrize("y", [np.zeros((2, 0)), np.zeros((2, 2, 2)), 3.0])
def test_a_target_that_is_no_column_is_an_error(y):
    with pytest.raises(DataError, match="y must be one column, or one per output; got shape"):
        read_numbers(y)


@pytest.mark.parametrize("gap", [np.nan, None, pd.NA])
def test_a_missing_number_is_an_error_that_names_its_row(gap):
    y = np.array([1.0, 2.0, gap], dtype=object)
    with pytest.raises(DataError, match="Input y contains NaN in row 2; drop the rows without a target"):
        read_numbers(y)


def test_an_infinite_number_is_an_error_that_names_its_row():
    with pytest.raises(DataError, match="Input y contains infinity in row 1"):
        read_numbers([1.0, np.inf])


def test_a_number_whose_square_overflows_is_an_error():
    with pytest.raises(DataError, match=r"y must lie within ±1e\+100; row 1 does not. Divide y by a constant"):
        read_numbers([1.0, -1e200])


def test_rows_that_are_not_used_need_no_number():
    found = read_numbers([1.0, np.nan], is_used=np.array([True, False]))
    assert found.values[0] == 1
    with pytest.raises(DataError, match="row 1"):
        read_numbers([1.0, np.nan], is_used=np.array([False, True]))


def test_losses_say_what_they_need():
    read_numbers([0.0], domain="non-negative")
    with pytest.raises(DataError, match="This loss needs a target of at least 0; got -1"):
        read_numbers([-1.0, 2.0], domain="non-negative")
    with pytest.raises(DataError, match="This loss needs a positive target; got 0"):
        read_numbers([0.0, 2.0], domain="positive")


CLASSES = {
    "text": (["b", "a", "b"], ["a", "b"]),
    "text array": (np.array(["b", "a", "b"]), ["a", "b"]),
    "objects": (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
    "pandas text": (pd.Series(["b", "a", "b"]), ["a", "b"]),
    "pandas categories": (pd.Series(pd.Categorical(["b", "a", "b"])), ["a", "b"]),
    "polars text": (pl.Series(["b", "a", "b"]), ["a", "b"]),
    "polars categories": (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ["a", "b"]),
    "arrow text": (pa.chunked_array([["b", "a", "b"]]), ["a", "b"]),
    "integers": ([5, 2, 5], [2, 5]),
    "nullable integers": (pd.Series([5, 2, 5], dtype="Int64"), [2, 5]),
    "integers among objects": (np.array([5, 2, 5], dtype=object), [2, 5]),
    "booleans": ([True, False, True], [False, True]),
    "nullable booleans": (pd.Series([True, False, True], dtype="boolean"), [False, True]),
    "floats": ([1.0, 0.0, 1.0], [0.0, 1.0]),
    "one column": (np.array([[5], [2], [5]]), [2, 5]),
    "arrow array": (pa.array(["b", "a", "b"]), ["a", "b"]),
    "arrow dictionary": (pa.array(["b", "a", "b"]).dictionary_encode(), ["a", "b"]),
    "floats among objects": (np.array([1.0, 0.0, 1.0], dtype=object), [0.0, 1.0]),
    "durations": (np.array([5, 2, 5], dtype="m8[D]"), [dt.timedelta(2), dt.timedelta(5)]),
}


class Town(StrEnum):
    BONN = "b"
    AACHEN = "a"


def test_members_of_an_enumeration_become_plain_text():
    found = read_classes([Town.BONN, Town.AACHEN])
    assert [type(label) for label in found.classes] == [str, str]
    assert found.classes.tolist() == [Town.AACHEN, Town.BONN] == ["a", "b"]


@pytest.mark.parametrize("case", CLASSES)
def test_classes_are_read(case):
    y, classes = CLASSES[case]
    found = read_classes(y)
    assert found.classes.tolist() == classes
    assert found.codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize("gap", [np.nan, None, pd.NA])
def test_a_missing_class_is_an_error_that_names_its_row(gap):
    y = np.array(["a", gap, "b"], dtype=object)
    with pytest.raises(DataError, match="Input y contains NaN in row 1; drop such rows"):
        read_classes(y)


def test_classes_of_mixed_types_are_an_error():
    with pytest.raises(DataError, match="Classes must be of one type; got a mixture such as text and numbers"):
        read_classes(["a", 1, "b"])


def test_one_class_is_an_error():
    with pytest.raises(DataError, match=r"A classifier needs at least 2 classes; got one class \('a'\)"):
        read_classes(["a", "a"])
    with pytest.raises(DataError, match=r"got one class \(0\.0\)"):
        read_classes(np.zeros(3))


def test_classes_in_several_columns_are_an_error():
    with pytest.raises(DataError, match=r"y must be one column of classes; got shape \(2, 2\)"):
        read_classes(np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"a", "b'a', a bytes"),
        (Decimal("1.5"), r"Decimal\('1.5'\), a Decimal"),
        (dt.date(2020, 1, 1), ".*, a date"),
        ((1, 2), r"\(1, 2\), a tuple"),
        ({}, "{}, a dict"),
    ],
    ids=["bytes", "decimal", "date", "tuple", "dict"],
)
def test_labels_that_no_file_can_hold_are_an_error_that_names_the_row(value, shown):
    y = np.array(["a", "b", None], dtype=object)
    y[2] = value
    with pytest.raises(DataError, match=f"Classes must be text, numbers or booleans; row 2 holds {shown}. Turn them"):
        read_classes(y)


@pytest.mark.parametrize("y", [np.array([b"a", b"b"]), pa.array([b"a", b"b"]), [b"a", b"b"]])
def test_bytes_are_no_labels(y):
    with pytest.raises(DataError, match=r"Classes must be text.*row 0 holds .*b'a'.*\. Turn them into text"):
        read_classes(y)


@pytest.mark.parametrize("y", [[2**63, 2**63 + 1, -1], [10**400, 3], pd.Series([2**70, 3])])
def test_labels_of_more_than_64_bits_are_an_error_instead_of_one_float(y):
    with pytest.raises(DataError, match="Classes must be text, or numbers of 64 bits; got a whole number of"):
        read_classes(y)


@pytest.mark.parametrize("read", [read_numbers, read_classes])
@pytest.mark.parametrize(
    "y",
    [
        np.ma.array([5, 1, 2], mask=[1, 0, 0]),
        [Decimal("sNaN"), Decimal(1), Decimal(2)],
        pa.array([None, 1, 2]),
        np.array(["NaT", 1, 2], dtype="M8[D]"),
    ],
    ids=["masked", "signalling", "arrow", "not a time"],
)
def test_what_is_missing_in_its_own_way_is_missing(read, y):
    match = (
        "got dates or times" if read is read_numbers and isinstance(y, np.ndarray) and y.dtype.kind == "M" else "row 0"
    )
    with pytest.raises(DataError, match=match):
        read(y)


def test_a_number_beyond_all_floats_is_an_error_that_names_its_row():
    with pytest.raises(DataError, match=r"must lie within ±1e\+100; row 1 holds a whole number of 1329 bits"):
        read_numbers([1, 10**400])


def test_rows_of_different_lengths_are_no_target():
    with pytest.raises(DataError, match="y must hold one value per row; its rows hold lists of different lengths"):
        read_numbers([[1], [1, 2]])


def test_text_takes_no_more_memory_than_it_has():
    labels = ["x" * 1_000_000, *("a", "b") * 1000]
    tracemalloc.start()
    assert len(read_classes(labels).classes) == 3
    assert tracemalloc.get_traced_memory()[1] < 50e6  # 8 GB where all of it were as wide as the widest
    tracemalloc.stop()
