"""Reading tables, whatever they come from."""

import datetime as dt
import decimal
import fractions
import tracemalloc
import types

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from nae.encoding import Columns, infer_kinds, read_table
from nae.encoding.columns import category_keys, numbers
from nae.errors import DataError

NAN = float("nan")


def kinds(table: object) -> list[str]:
    return [kind for kind, _ in infer_kinds(read_table(table))]


def assert_column(table: object, expected: list[object], kind: str) -> None:
    """Check the first column of a table, None standing for whatever is missing."""
    columns = read_table(table)
    found = [None if value is None or value is pd.NA or value != value else value for value in columns.arrays[0]]
    assert found == expected
    assert infer_kinds(columns)[0][0] == kind


def test_columns_that_differ_are_told_apart():
    with pytest.raises(AssertionError):
        assert_column([[1], [2]], [1, 3], "number")
    with pytest.raises(AssertionError):
        assert_column([[1], [2]], [1, 2], "category")


PANDAS = {
    "float": (pd.Series([1.5, NAN]), [1.5, None], "number"),
    "int": (pd.Series([1, 2]), [1, 2], "number"),
    "uint8": (pd.Series([1, 255], dtype="uint8"), [1, 255], "number"),
    "float16": (pd.Series([0.5, 2], dtype="float16"), [0.5, 2], "number"),
    "nullable Int64": (pd.Series([1, None], dtype="Int64"), [1, None], "number"),
    "nullable Float64": (pd.Series([1.5, None], dtype="Float64"), [1.5, None], "number"),
    "bool": (pd.Series([True, False]), [True, False], "boolean"),
    "nullable boolean": (pd.Series([True, None], dtype="boolean"), [True, None], "boolean"),
    "nullable boolean without nulls": (pd.Series([True, False], dtype="boolean"), [True, False], "boolean"),
    "str": (pd.Series(["x", None]), ["x", None], "category"),
    "string": (pd.Series(["x", None], dtype="string"), ["x", None], "category"),
    "object text": (pd.Series(["x", None, np.nan], dtype=object), ["x", None, None], "category"),
    "object numbers": (pd.Series([1, 2.5, None], dtype=object), [1, 2.5, None], "number"),
    "object booleans": (pd.Series([True, None], dtype=object), [True, None], "boolean"),
    "object decimals": (pd.Series([decimal.Decimal("1.5"), None], dtype=object), [1.5, None], "number"),
    "mixed text and numbers": (pd.Series(["x", 1, True], dtype=object), ["x", 1, True], "category"),
    "categorical": (pd.Series(pd.Categorical(["x", None], categories=["x", "y"])), ["x", None], "category"),
    "ordered categorical": (pd.Series(pd.Categorical(["x", "y"], ordered=True)), ["x", "y"], "category"),
    "categorical numbers": (pd.Series(pd.Categorical([3, None])), [3, None], "category"),
    "pyarrow int": (pd.Series([1, None], dtype="int64[pyarrow]"), [1, None], "number"),
    "pyarrow double": (pd.Series([1.5, None], dtype="double[pyarrow]"), [1.5, None], "number"),
    "pyarrow bool": (pd.Series([True, None], dtype="bool[pyarrow]"), [True, None], "boolean"),
    "pyarrow string": (pd.Series(["x", None], dtype=pd.ArrowDtype(pa.string())), ["x", None], "category"),
    "pyarrow decimal": (
        pd.Series([decimal.Decimal("1.5"), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        [1.5, None],
        "number",
    ),
    "pyarrow dictionary": (
        pd.Series(["x", None], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        ["x", None],
        "category",
    ),
    "all missing": (pd.Series([NAN, NAN]), [None, None], "number"),
    "all missing object": (pd.Series([None, None], dtype=object), [None, None], "number"),
}


@pytest.mark.parametrize("case", PANDAS)
def test_pandas_columns_are_read(case):
    series, expected, kind = PANDAS[case]
    assert_column(pd.DataFrame({"a": series}), expected, kind)


POLARS = {
    "float": (pl.Series([1.5, None]), [1.5, None], "number"),
    "int": (pl.Series([1, None]), [1, None], "number"),
    "int without nulls": (pl.Series([1, 2]), [1, 2], "number"),
    "wide int": (pl.Series([2**100], dtype=pl.Int128), [float(2**100)], "number"),
    "decimal": (pl.Series([decimal.Decimal("1.5"), None]), [1.5, None], "number"),
    "boolean": (pl.Series([True, False]), [True, False], "boolean"),
    "boolean with nulls": (pl.Series([True, None]), [True, None], "boolean"),
    "string": (pl.Series(["x", None]), ["x", None], "category"),
    "categorical": (pl.Series(["x", None], dtype=pl.Categorical), ["x", None], "category"),
    "enum": (pl.Series(["x", None], dtype=pl.Enum(["y", "x"])), ["x", None], "category"),
    "null": (pl.Series([None, None]), [None, None], "number"),
}


@pytest.mark.parametrize("case", POLARS)
@pytest.mark.parametrize("is_lazy", [False, True], ids=["eager", "lazy"])
def test_polars_columns_are_read(case, is_lazy):
    series, expected, kind = POLARS[case]
    frame = pl.DataFrame({"a": series})
    assert_column(frame.lazy() if is_lazy else frame, expected, kind)


ARROW = {
    "int": (pa.array([1, None]), [1, None], "number"),
    "double": (pa.array([1.5, None]), [1.5, None], "number"),
    "bool": (pa.array([True, None]), [True, None], "boolean"),
    "string": (pa.array(["x", None]), ["x", None], "category"),
    "large string": (pa.array(["x", None], pa.large_string()), ["x", None], "category"),
    "dictionary": (pa.array(["x", None]).dictionary_encode(), ["x", None], "category"),
    "decimal": (pa.array([decimal.Decimal("1.5"), None]), [1.5, None], "number"),
    "decimal of 256 bits": (pa.array([decimal.Decimal("1.5"), None], pa.decimal256(50, 2)), [1.5, None], "number"),
    "null": (pa.array([None, None]), [None, None], "number"),
}


@pytest.mark.parametrize("case", ARROW)
def test_arrow_columns_are_read(case):
    array, expected, kind = ARROW[case]
    assert_column(pa.table({"a": array}), expected, kind)


ARRAYS = {
    "float": (np.array([[1.5], [NAN]]), [1.5, None], "number"),
    "float32": (np.array([[1.5], [2]], dtype=np.float32), [1.5, 2], "number"),
    "int": (np.array([[2**62]]), [2**62], "number"),
    "uint64": (np.array([[2**63]], dtype=np.uint64), [2**63], "number"),
    "bool": (np.array([[True], [False]]), [True, False], "boolean"),
    "text": (np.array([["x"], ["y"]]), ["x", "y"], "category"),
    "object numbers": (np.array([[1], [2.5], [None]], dtype=object), [1, 2.5, None], "number"),
    "object text": (np.array([["x"], [None], [NAN]], dtype=object), ["x", None, None], "category"),
    "object booleans": (np.array([[True], [None]], dtype=object), [True, None], "boolean"),
    "numpy text among objects": (np.array([[np.str_("x")], [None]], dtype=object), ["x", None], "category"),
    "object fractions": (np.array([[fractions.Fraction(1, 2)]], dtype=object), [0.5], "number"),
    "masked": (np.ma.masked_array([[1], [2]], mask=[[False], [True]]), [1, None], "number"),
    "masked text": (
        np.ma.masked_array(np.array([["x"], ["y"]], dtype=object), mask=[[False], [True]]),
        ["x", None],
        "category",
    ),
    "signalling decimals": ([[decimal.Decimal("1.5")], [decimal.Decimal("sNaN")]], [1.5, None], "number"),
    "decimals that are none among text": ([["x"], [decimal.Decimal("NaN")]], ["x", None], "category"),
    "memory": (memoryview(np.array([[1.5], [NAN]])), [1.5, None], "number"),
    "matrix": (np.array([[1.0], [2.0]]).view(np.matrix), [1, 2], "number"),
    "lists": ([[1], [2]], [1, 2], "number"),
    "lists with gaps": ([[1], [None]], [1, None], "number"),
    "lists of text and numbers": ([["x", 1], [None, 2]], ["x", None], "category"),
    "tuples": (((1, "x"), (2, "y")), [1, 2], "number"),
    "large numbers": ([[2**63], [2**70]], [float(2**63), float(2**70)], "number"),
}


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [0.1, None]}, dtype="float32"),
        pd.DataFrame({"a": [0.1, None]}, dtype="Float32"),
        pl.DataFrame({"a": [0.1, None]}, schema={"a": pl.Float32}),
        pa.table({"a": pa.array([0.1, None], pa.float32())}),
        np.array([[0.1], [NAN]], dtype=np.float32),
        {"a": np.array([0.1, NAN], dtype=np.float32)},
        [{"a": np.float32(0.1)}, {"a": None}],
    ],
    ids=["pandas", "pandas nullable", "polars", "arrow", "array", "mapping", "records"],
)
def test_single_precision_is_kept_until_a_category_has_its_text(table):
    (column,) = read_table(table).arrays
    assert category_keys(column).tolist() == ["0.1", None]
    np.testing.assert_array_equal(numbers(column, "a"), [np.float32(0.1), NAN])


@pytest.mark.parametrize("case", ARRAYS)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_arrays_and_lists_are_read(case):
    table, expected, kind = ARRAYS[case]
    assert_column(table, expected, kind)
    assert read_table(table).names is None


MAPPINGS = {
    "lists": {"a": [1, None]},
    "tuples": {"a": (1, None)},
    "array": {"a": np.array([1, NAN])},
    "pandas series": {"a": pd.Series([1, NAN])},
    "masked array": {"a": np.ma.array([1, 2], mask=[0, 1])},
    "polars series": {"a": pl.Series([1, None])},
    "arrow array": {"a": pa.array([1, None])},
    "records": [{"a": 1}, {"a": None}],
    "ragged records": [{"a": 1}, {}],
}


@pytest.mark.parametrize("case", MAPPINGS)
def test_mappings_and_records_are_read(case):
    assert_column(MAPPINGS[case], [1, None], "number")
    assert read_table(MAPPINGS[case]).names == ("a",)


def test_a_mapping_of_single_values_is_one_row():
    columns = read_table({"a": 1, "b": "text", "c": True})
    assert columns.n_rows == 1
    assert kinds({"a": 1, "b": "text", "c": True}) == ["number", "category", "boolean"]


def test_records_keep_every_name_in_order_of_appearance():
    assert read_table([{"a": 1}, {"b": 2, "a": 3}]).names == ("a", "b")


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1], "b": ["x"]}),
        pl.DataFrame({"a": [1], "b": ["x"]}),
        pa.table({"a": [1], "b": ["x"]}),
        {"a": [1], "b": ["x"]},
    ],
    ids=["pandas", "polars", "pyarrow", "mapping"],
)
def test_named_columns_keep_their_names(table):
    assert read_table(table).names == ("a", "b")


def test_names_that_are_not_text_are_no_names():
    assert read_table(pd.DataFrame([[1, 2]])).names is None
    assert read_table({0: [1], 1: [2]}).names is None


def test_columns_that_are_read_already_pass_through():
    columns = Columns((np.zeros(2),))
    assert read_table(columns) is columns


def test_categorical_columns_are_marked():
    frame = pd.DataFrame({"a": [1], "b": pd.Categorical([1])})
    assert read_table(frame).categorical == {1}
    assert read_table(frame).select(["b", "a"]).categorical == {0}
    reasons = [reason for _, reason in infer_kinds(read_table(frame))]
    assert reasons == ["numeric column", "the table calls it categorical"]


def test_the_index_of_a_frame_does_not_matter():
    frame = pd.DataFrame({"a": [1, 2]}, index=[7, 7])
    np.testing.assert_array_equal(read_table(frame).arrays[0], [1, 2])


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame({"a": [1]}), pl.LazyFrame({"a": [1]}), pa.table({"a": [1]})],
    ids=["pandas", "polars", "pyarrow"],
)
def test_frames_are_known_as_such_before_narwhals_is_loaded(table, monkeypatch):
    monkeypatch.setattr("nae.encoding.frames.sys", types.SimpleNamespace(modules={}))
    assert read_table(table).names == ("a",)


def test_a_table_without_rows_or_columns_is_read():
    assert read_table(pd.DataFrame({"a": []})).n_rows == 0
    assert read_table(np.empty((0, 3))).n_rows == 0
    assert len(read_table(np.empty((0, 3))).arrays) == 3
    assert read_table({}).arrays == ()


DAY = dt.date(2020, 1, 1)
RULE = "must hold numbers, booleans, text or categories"
TO_NUMBERS = "Turn it into numbers, such as days since a fixed day, or a year and a month, or"
DATES = {
    "pandas datetime": pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}),
    "pandas datetime with a zone": pd.DataFrame({"when": pd.to_datetime(["2020-01-01"]).tz_localize("UTC")}),
    "pandas duration": pd.DataFrame({"when": pd.to_timedelta([1], unit="D")}),
    "polars date": pl.DataFrame({"when": [DAY]}),
    "polars duration": pl.DataFrame({"when": [dt.timedelta(1)]}),
    "polars time": pl.DataFrame({"when": [dt.time(1)]}),
    "arrow date": pa.table({"when": pa.array([DAY])}),
    "numpy dates by name": {"when": np.array(["2020-01-01"], dtype="datetime64[D]")},
    "numpy durations by name": {"when": np.array([1], dtype="timedelta64[D]")},
}


@pytest.mark.parametrize("case", DATES)
def test_dates_and_durations_are_an_error_with_a_hint(case):
    match = rf"Column 'when' {RULE}; it holds .*\. {TO_NUMBERS} drop the column \(nae fit --ignore when\)\.$"
    with pytest.raises(DataError, match=match):
        read_table(DATES[case])


@pytest.mark.parametrize("dtype", ["datetime64[D]", "timedelta64[D]"])
def test_arrays_of_dates_are_an_error_with_a_hint(dtype):
    with pytest.raises(DataError, match=rf"A table {RULE}; it holds an array of .*\. {TO_NUMBERS} leave such"):
        read_table(np.array([[1]], dtype=dtype))


@pytest.mark.parametrize("case", DATES)
def test_what_is_not_asked_for_may_hold_anything(case):
    columns = read_table(DATES[case], only=["price"])
    assert columns.names == ("when",)
    assert np.isnan(columns.arrays[0]).tolist() == [True]


def test_records_and_arrays_are_read_as_asked():
    columns = read_table([{"a": 1, "b": [1]}, {"a": 2}], only=["a"])
    assert [array.tolist()[:1] for array in columns.arrays[:1]] == [[1.0]]
    assert columns.names == ("a", "b")
    assert len(read_table(np.ones((2, 3)), only=["a"]).arrays) == 3


OBJECTS = {
    "dates": (pd.DataFrame({"a": pd.Series([DAY], dtype=object)}), "date"),
    "datetimes": ({"a": [dt.datetime(2020, 1, 1)]}, "datetime"),
    "numpy dates": ({"a": [np.datetime64("2020-01-01")]}, "datetime64"),
    "numpy durations": ({"a": [np.timedelta64(1, "D")]}, "timedelta64"),
    "dates among text": ({"a": [DAY, "x"]}, "date"),
    "lists": (pd.DataFrame({"a": [[1, 2], [3]]}), "list"),
    "lists of one": ({"a": [[1], [2]]}, "list"),
    "arrays": ({"a": np.zeros((2, 2))}, "ndarray"),
    "dicts": (pd.DataFrame({"a": [{"x": 1}, {}]}), "dict"),
    "bytes": ({"a": [b"x"]}, "bytes"),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_objects_that_are_no_values_are_an_error_with_a_hint(case):
    table, shown = OBJECTS[case]
    hint = "Turn it into one of these, or"
    if "date" in shown or "time" in shown:
        hint = TO_NUMBERS
    elif shown in ("list", "ndarray", "dict"):
        hint = "Turn nested values into columns of their own, or"
    with pytest.raises(DataError, match=f"Column 'a' {RULE}; it holds {shown} values. {hint} drop the column"):
        infer_kinds(read_table(table))


def test_a_name_with_a_blank_is_quoted_for_the_command_line():
    with pytest.raises(DataError, match=r"drop the column \(nae fit --ignore 'last sold'\)"):
        read_table(pd.DataFrame({"last sold": pd.to_datetime(["2020-01-01"])}))


NESTED = {
    "polars list": pl.DataFrame({"a": [[1, 2]]}),
    "polars struct": pl.DataFrame({"a": [{"b": 1}]}),
    "arrow list": pa.table({"a": [[1, 2]]}),
}


@pytest.mark.parametrize("case", NESTED)
def test_nested_columns_are_an_error_with_a_hint(case):
    with pytest.raises(DataError, match=r"Column 'a' must hold .* Turn nested values into columns of their own"):
        read_table(NESTED[case])


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (pa.array([b"x"], pa.large_binary()), "large_binary"),
        (pa.array([b"x"], pa.binary(1)), r"fixed_size_binary\[1\]"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "map<string, int64>"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "month_day_nano_interval"),
        (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]), "sparse_union"),
    ],
    ids=lambda one: str(one.type) if hasattr(one, "type") else None,
)
def test_types_that_arrow_alone_knows_are_an_error_that_names_them(array, shown):
    with pytest.raises(
        DataError, match=f"Column 'a' must hold .* it holds {shown}.*Turn it into one of these, or drop"
    ):
        read_table(pa.table({"a": array}))


@pytest.mark.parametrize(
    ("series", "shown"),
    [
        (pd.period_range("2020", periods=2, freq="M"), "period"),
        (np.array([1j, 2]), "complex128"),
    ],
    ids=["period", "complex"],
)
def test_other_types_of_pandas_are_an_error_that_names_them(series, shown):
    with pytest.raises(
        DataError, match=f"Column 'a' must hold .* it holds {shown}.*Turn it into one of these, or drop"
    ):
        read_table(pd.DataFrame({"a": series}))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_a_name_that_stands_twice_is_an_error(table):
    with pytest.raises(DataError, match="Column names must differ; 'a' stands for 2 columns"):
        read_table(table)


@pytest.mark.parametrize(
    "table", [pd.DataFrame([[1, 2]], columns=["a", 1]), {"a": [1], 1: [2]}], ids=["pandas", "mapping"]
)
def test_names_of_mixed_types_are_an_error(table):
    match = r"Column names must all be text or none of them; got \['int', 'str'\]. Rename the columns"
    with pytest.raises(DataError, match=match):
        read_table(table)


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array", "dok_array", "lil_matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.bool_, np.int64])
def test_a_sparse_table_is_read_as_the_dense_one(kind, dtype):
    dense = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]]).astype(dtype)
    same, found = read_table(dense), read_table(getattr(scipy.sparse, kind)(dense))
    assert found.names is None
    for one, other in zip(found.arrays, same.arrays, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_entries_that_stand_twice_in_a_sparse_table_are_added():
    twice = scipy.sparse.coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    np.testing.assert_array_equal(np.stack(read_table(twice).arrays, axis=1), [[3, 0], [0, 5]])


def test_a_sparse_array_of_one_axis_is_an_error():
    with pytest.raises(DataError, match="a table must have two axes"):
        read_table(scipy.sparse.coo_array(np.eye(2)[0]))


@pytest.mark.parametrize(
    ("series", "dense"),
    [
        (pd.arrays.SparseArray([0.0, 1.0]), np.array([0.0, 1.0])),
        (pd.arrays.SparseArray([0, 0, 3]), np.array([0.0, 0.0, 3.0])),
        (pd.arrays.SparseArray([np.nan, 2.0]), np.array([np.nan, 2.0])),
        (pd.arrays.SparseArray([True, False], fill_value=False), np.array([True, False])),
    ],
    ids=["floats", "integers", "missing", "booleans"],
)
def test_sparse_columns_of_pandas_are_read(series, dense):
    found = read_table(pd.DataFrame({"a": series})).arrays[0]
    assert found.dtype == dense.dtype
    np.testing.assert_array_equal(found, dense)


def test_complex_input_is_an_error():
    with pytest.raises(DataError, match="Complex data not supported: a table must hold real numbers"):
        read_table(np.array([[1j]]))


@pytest.mark.parametrize(
    ("table", "n_axes"), [(np.zeros(3), 1), ([1, 2], 1), ([], 1), (np.zeros((2, 2, 2)), 3), (3, 0)]
)
def test_a_table_without_two_axes_is_an_error_with_a_hint(table, n_axes):
    with pytest.raises(DataError, match=rf"must have two axes \(rows, columns\); got {n_axes}. Reshape your data"):
        read_table(table)


def test_text_is_no_table():
    with pytest.raises(DataError, match=r"must be a data frame, an array or a list of rows; got text. Read the file"):
        read_table("table.csv")


def test_nothing_is_no_table():
    with pytest.raises(DataError, match=r"must be a data frame, an array or a list of rows; got None\.$"):
        read_table(None)


@pytest.mark.parametrize("make", [pd.Series, pl.Series])
def test_a_series_is_an_error_that_says_how_to_make_a_table_of_it(make):
    with pytest.raises(
        DataError, match=r"must have two axes .*; got 1\. For a Series, use X\.to_frame\(\) if it is one"
    ):
        read_table(make([1.0, 2.0]))


def test_rows_of_different_lengths_are_an_error():
    with pytest.raises(DataError, match="A table must have rows of one length"):
        read_table([[1, 2], [3]])


def test_rows_of_text_of_different_lengths_are_an_error():
    with pytest.raises(DataError, match=r"A table must have rows of one length; got \[1, 2\]"):
        read_table([["a", 2], ["b"]])


def test_a_list_of_texts_is_no_table():
    with pytest.raises(DataError, match=r"must have two axes \(rows, columns\); got 1\."):
        read_table(["ab", "cd"])


@pytest.mark.parametrize("as_row", [list, np.array], ids=["lists", "arrays"])
def test_lists_of_text_take_no_more_memory_than_they_have(as_row):
    table = [as_row(["a", "b"])] * 2000 + [as_row(["x" * 1_000_000, "b"])]
    tracemalloc.start()
    assert read_table(table).n_rows == 2001
    assert tracemalloc.get_traced_memory()[1] < 50e6  # 16 GB where all of them are as wide as the widest
    tracemalloc.stop()


def test_columns_of_different_lengths_are_an_error():
    with pytest.raises(DataError, match=r"Columns must have one length; got \[1, 2\]"):
        read_table({"a": [1], "b": [1, 2]})


def test_a_record_that_is_no_mapping_is_an_error():
    with pytest.raises(DataError, match="Records must all be mappings from names to values; record 1 is a list"):
        read_table([{"a": 1}, [2]])
