"""Kinds are inferred with a reason, or given."""

import numpy as np
import pandas as pd
import pytest

from nae.encoding import Columns, infer_kinds, read_table
from nae.errors import ConfigError


@pytest.fixture
def columns() -> Columns:
    return read_table(
        pd.DataFrame(
            {
                "age": [1.0, 2.0],
                "sex": ["f", "m"],
                "zip": [10115, 20095],
                "smokes": [True, False],
                "maybe": pd.Series([True, None], dtype=object),
                "empty": pd.Series([None, None], dtype=object),
            }
        )
    )


def test_kinds_come_with_a_reason(columns):
    assert infer_kinds(columns) == [
        ("number", "numeric column"),
        ("category", "text"),
        ("number", "numeric column"),
        ("boolean", "true or false"),
        ("boolean", "true or false, with missing"),
        ("number", "no value at all"),
    ]


def test_numbers_among_objects_are_numbers():
    columns = Columns((np.array([1, None, True], dtype=object),))
    assert infer_kinds(columns) == [("number", "numbers in an object column")]


def test_kinds_may_be_given_by_name(columns):
    found = infer_kinds(columns, {"zip": "category", "age": "auto"})
    assert found[2] == ("category", "given by feature_types")
    assert found[0] == ("number", "numeric column")


def test_kinds_may_be_given_in_order(columns):
    found = infer_kinds(columns, ["auto", "nominal", "category", "boolean", "auto", "continuous"])
    assert [kind for kind, _ in found] == ["number", "category", "category", "boolean", "boolean", "number"]


def test_columns_without_names_are_called_by_position():
    columns = Columns((np.zeros(2), np.zeros(2)))
    assert infer_kinds(columns, {"x1": "category"})[1][0] == "category"


def test_an_unknown_column_is_an_error_with_the_nearest_name(columns):
    match = "feature_types names the column 'agee', which the table does not have. Did you mean 'age'"
    with pytest.raises(ConfigError, match=match):
        infer_kinds(columns, {"agee": "number"})


@pytest.mark.parametrize("given", [["number"], "category"])
def test_a_list_of_the_wrong_length_is_an_error(columns, given):
    with pytest.raises(ConfigError, match=r"feature_types must have one word per column \(6\); got"):
        infer_kinds(columns, given)


def test_an_unknown_kind_is_an_error_with_the_nearest_word(columns):
    match = "must be 'auto', 'number', 'boolean' or 'category'; got 'categorical' for 'sex'. Did you mean 'category'"
    with pytest.raises(ConfigError, match=match):
        infer_kinds(columns, {"sex": "categorical"})
