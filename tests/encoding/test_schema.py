"""Schemas: which slot a value belongs to, and what is learned of a column."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from nae.encoding import Category, Columns, Number, Schema, build_schema, infer_kinds
from nae.encoding.schema import check_numbers, rank_levels
from nae.errors import ConfigError, DataError, FormatError


def learn(*arrays: np.ndarray, n_knots: int = 8, names: tuple[str, ...] | None = None, types=None) -> Schema:
    columns = Columns(tuple(arrays), names)
    return build_schema(columns, infer_kinds(columns, types), np.ones(columns.n_rows), n_knots=n_knots)


def text(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


FLOATS = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8, unique=True),
    st.integers(1, 10).flatmap(lambda n: arrays(np.float64, n, elements=FLOATS)),
    st.sampled_from([np.float64, np.float32]),
)
def test_cells_interpolate_back_to_the_value(knots, values, dtype):
    number = Number("a", np.unique(np.array(knots) + 0.0))
    cells = Schema((number,)).locate(Columns((values,)), dtype=dtype)
    missing = np.isnan(values)
    assert np.all(cells.slot[missing] == number.n_values)
    assert np.all((cells.slot >= 0) & (cells.upper < number.n_slots))
    assert np.all((cells.fraction >= 0) & (cells.fraction < 1))
    assert np.all(cells.upper[~missing] < number.n_values)
    if dtype is np.float64:
        low, high = number.knots[cells.slot[~missing]], number.knots[cells.upper[~missing]]
        back = low * (1 - cells.fraction[~missing]) + high * cells.fraction[~missing]
        expected = np.clip(values[~missing], number.knots[0], number.knots[-1])[:, None]
        np.testing.assert_allclose(back, expected, rtol=1e-9, atol=1e-9 * np.abs(number.knots).max())


def test_a_value_at_a_knot_lies_at_its_slot():
    schema = learn(np.array([3.0, 1.0, 2.0]))
    cells = schema.locate(Columns((np.array([1.0, 2.0, 3.0]),)))
    assert cells.slot[:, 0].tolist() == [0, 1, 2]
    assert not cells.fraction.any()


def test_beyond_the_ends_the_end_slot_holds():
    schema = learn(np.array([1.0, 2.0]))
    cells = schema.locate(Columns((np.array([-np.inf, 0.0, 9.0, np.inf]),)))
    assert cells.slot[:, 0].tolist() == [0, 0, 1, 1]
    assert not cells.fraction.any()


def test_missing_and_unseen_have_slots_of_their_own():
    schema = learn(text("a", "b", "a"), np.array([1.0, np.nan, 2.0]))
    cells = schema.locate(Columns((text("a", "b", "z", None), np.array([1, 2, np.nan, np.nan]))))
    assert cells.slot[:, 0].tolist() == [0, 1, 3, 2]
    assert (cells.slot[:, 1] - schema.offsets[1]).tolist() == [0, 1, 2, 2]
    assert schema.features[0].labels == ("a", "b", "missing", "unseen")
    assert schema.features[1].labels == ("1", "2", "missing", "unseen")


def test_rare_levels_share_a_slot_of_their_own():
    schema = learn(text(*"aaabbbccde"), n_knots=3)
    category = schema.features[0]
    assert category.levels == ("a", "b")
    assert category.rare == ("c", "d", "e")
    assert category.labels == ("a", "b", "other", "missing", "unseen")
    cells = schema.locate(Columns((text("c", "d", "e", "z"),)))
    assert cells.slot[:, 0].tolist() == [2, 2, 2, 4]


@pytest.mark.parametrize(
    ("least", "limit", "levels"),
    [
        (0.0, 9, "abcde"),
        (0.1, 9, "abcde"),  # as much is not less
        (0.11, 9, "abc"),
        (0.25, 9, "ab"),
        (0.25, 2, "a"),  # the shared slot counts, too
        (0.5, 9, ""),
    ],
)
def test_levels_that_count_for_little_are_rare(least: float, limit: int, levels: str):
    counts = {"a": 3.0, "b": 3.0, "c": 2.0, "d": 1.0, "e": 1.0}
    found, rare = rank_levels(counts, limit, least=least * 10)
    assert found == tuple(levels)
    assert set(found) | set(rare) == set(counts)
    scaled = {level: count / 1000 for level, count in counts.items()}
    assert rank_levels(scaled, limit, least=least * sum(scaled.values())) == (found, rare)


def test_a_single_rare_level_keeps_its_slot():
    assert rank_levels({"a": 99.0, "b": 1.0}, 9, least=5.0) == (("a", "b"), ())


def test_rare_is_rare_among_all_rows_missing_ones_included():
    columns = Columns((text(*"aabc", *[None] * 16),))
    kinds = infer_kinds(columns)
    found = build_schema(columns, kinds, np.ones(20), n_knots=9, least_share=0.1).features[0]
    assert (found.levels, found.rare) == (("a",), ("b", "c"))


def test_as_many_levels_as_knots_all_keep_their_own():
    category = learn(text(*"abc"), n_knots=3).features[0]
    assert category.levels == ("a", "b", "c")
    assert category.rare == ()


def test_levels_are_ordered_by_weight_then_by_name():
    columns = Columns((text("b", "a", "c"),))
    schema = build_schema(columns, infer_kinds(columns), np.array([1.0, 1.0, 5.0]), n_knots=8)
    assert schema.features[0].levels == ("c", "a", "b")


def test_negative_zero_is_zero():
    schema = learn(np.array([-0.0, 1.0]))
    assert not np.signbit(schema.features[0].knots).any()
    assert schema.locate(Columns((np.array([-0.0, 0.0]),))).slot[:, 0].tolist() == [0, 0]


def test_a_column_of_missing_values_has_one_knot():
    number = learn(np.full(3, np.nan)).features[0]
    assert number.knots.tolist() == [0.0]
    assert number.has_missing
    assert not number.integral


def test_a_constant_column_has_one_knot():
    schema = learn(np.full(3, 7.0))
    assert schema.features[0].knots.tolist() == [7.0]
    assert schema.locate(Columns((np.array([-9.0, 7.0, 9.0]),))).slot[:, 0].tolist() == [0, 0, 0]


def test_huge_spans_do_not_overflow():
    schema = Schema((Number("a", np.array([-1.7e308, 1.7e308])),))
    cells = schema.locate(Columns((np.array([0.0, 8.5e307]),)))
    np.testing.assert_allclose(cells.fraction[:, 0], [0.5, 0.75])


def test_tiny_spans_do_not_vanish():
    schema = learn(np.array([0.0, 5e-324]))
    cells = schema.locate(Columns((np.array([0.0, 5e-324]),)))
    assert cells.slot[:, 0].tolist() == [0, 1]
    assert not cells.fraction.any()


def test_booleans_are_knots_at_zero_and_one():
    number = learn(np.array([True, False])).features[0]
    assert number.kind == "boolean"
    assert number.labels == ("False", "True", "missing", "unseen")
    assert learn(np.array([1.0, 0.0]), types=["boolean"]).features[0].kind == "boolean"


def test_whole_numbers_are_noticed():
    schema = learn(np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.5, 3.0]))
    assert [feature.integral for feature in schema.features] == [True, False]


@pytest.mark.parametrize(("value", "shown"), [(np.inf, "inf"), (-np.inf, "-inf")])
def test_an_infinite_number_is_an_error_that_names_column_and_row(value, shown):
    match = f"Column 'a' must hold finite numbers; row 1 holds {shown}. Mark it missing or replace it"
    with pytest.raises(DataError, match=match):
        learn(np.array([0.0, value]), names=("a",))


def test_errors_count_rows_as_the_caller_does():
    columns = Columns((np.array([0.0, np.inf]),), ("a",))
    with pytest.raises(DataError, match="row 9 holds inf"):
        check_numbers(columns, infer_kinds(columns), np.array([4, 9]))


def test_infinity_is_a_category_like_any_other():
    columns = Columns((np.array([0.0, np.inf]),), ("a",))
    kinds = infer_kinds(columns, {"a": "category"})
    check_numbers(columns, kinds, np.arange(2))
    assert build_schema(columns, kinds, np.ones(2), n_knots=8).features[0].levels == ("0", "inf")


def test_a_boolean_that_is_neither_is_an_error_with_a_hint():
    match = "Column 'a' must hold booleans, or 0 and 1; row 1 holds 2. Pass feature_types={'a': 'number'}"
    with pytest.raises(DataError, match=match):
        learn(np.array([0.0, 2.0]), names=("a",), types=["boolean"])


def test_the_number_of_columns_must_fit():
    with pytest.raises(DataError, match="must have the 1 columns the model was trained on; got 2"):
        learn(np.zeros(2)).locate(Columns((np.zeros(2), np.zeros(2))))


def test_features_are_found_by_name_and_position():
    schema = learn(np.zeros(2), np.ones(2), names=("age", "height"))
    assert [schema.index(key) for key in ("age", "height", 0, 1, -1)] == [0, 1, 0, 1, 1]
    with pytest.raises(ConfigError, match=r"No feature is called 'hight'. Did you mean 'height'"):
        schema.index("hight")
    with pytest.raises(ConfigError, match=r"A feature's position must be in \[0, 1\]; got 2"):
        schema.index(2)


def test_a_schema_survives_json():
    schema = learn(text(*"aabbc"), np.arange(5.0), np.array([True] * 5), n_knots=2, names=("a", "b", "c"))
    again = Schema.from_dict(schema.to_dict(), schema.knots)
    assert again.to_dict() == schema.to_dict()
    np.testing.assert_array_equal(again.knots, schema.knots)
    assert isinstance(again.features[0], Category)
    assert [feature.kind for feature in again.features] == ["category", "number", "boolean"]


@pytest.mark.parametrize(
    ("knots", "match"),
    [
        ([0.0], "The knots of 'a' must be 2 finite numbers"),
        ([0.0, np.nan], "The knots of 'a' must be 2 finite numbers"),
        ([1.0, 0.0], "The knots of 'a' must ascend"),
        ([0.0, 1.0, 2.0], "The file must hold 2 knots; got 3"),
    ],
)
def test_knots_that_do_not_fit_are_an_error(knots, match):
    content = learn(np.array([0.0, 1.0]), names=("a",)).to_dict()
    with pytest.raises(FormatError, match=match):
        Schema.from_dict(content, np.array(knots))


def test_cells_may_be_taken_and_rounded():
    cells = learn(np.array([0.0, 1.0])).locate(Columns((np.array([0.2, 0.8, 1.0]),)))
    assert cells.nearest[:, 0].tolist() == [0, 1, 1]
    assert len(cells.take(np.array([2]))) == 1
    assert cells.upper[:, 0].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (1e308, r"numbers within ±4\.494e\+307; row 9 holds 1e\+308\. Divide the column by a constant"),
        (-np.inf, "finite numbers; row 9 holds -inf. Mark it missing or replace it"),
    ],
)
def test_numbers_that_no_model_file_holds_are_an_error(value, match):
    columns = Columns((np.array([1.0, value]),), ("a",))
    with pytest.raises(DataError, match=f"Column 'a' must hold {match}"):
        check_numbers(columns, infer_kinds(columns), np.array([4, 9]))
