import pytest

from nae.errors import UserError
from nae.explanation.outputs import pick_output
from nae.plots.style import (
    decimals_for,
    format_compact,
    format_fixed,
    format_number,
    format_signed,
    format_value,
    nice_ticks,
    shorten,
    shorten_all,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.5, "−0.5"),
        (1234.5, "1,234"),
        (0.012345, "0.0123"),
        (3.0, "3"),
        (1e-9, "1.00e−09"),
        (float("nan"), "–"),
    ],
)
def test_a_number_has_three_telling_digits(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "missing"), (float("nan"), "missing"), (True, "True"), (37.85, "37.85"), (-122.25, "−122.25"),
     (1484705.0, "1,484,705"), ("left", "left")],
)  # fmt: skip
def test_a_value_is_written_as_in_a_table(value: object, text: str) -> None:
    assert format_value(value) == text


def test_columns_of_numbers_have_fixed_decimals() -> None:
    assert decimals_for(1.8) == 2
    assert decimals_for(0.05) == 4
    assert decimals_for(5000.0) == 0
    assert decimals_for(0.0) == 2
    assert format_fixed(-0.001, 2) == "0.00"
    assert format_fixed(-1.5, 2) == "−1.50"
    assert format_signed(1.5, 1) == "+1.5"
    assert format_signed(0.001, 1) == "0.0"


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (500, "500"), (150000, "150k"), (-2.5e6, "−2.5M"), (3e9, "3B")])
def test_an_axis_writes_large_numbers_short(value: float, text: str) -> None:
    assert format_compact(value) == text


def test_a_long_text_loses_its_middle() -> None:
    short = shorten("Outlying-US(Guam-USVI-etc)", 15)
    assert len(short) <= 15
    assert short.startswith("Outlying")
    assert short.endswith("etc)")
    assert shorten("one\ntwo") == "one two"


def test_shortened_names_stay_apart() -> None:
    short = shorten_all(["Married-AF-spouse", "Married-civ-spouse", "Divorced"], 13)
    assert len(set(short)) == 3
    assert short[2] == "Divorced"
    assert shorten_all([], 10) == []


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (18, 79, [20, 40, 60]),
        (-0.31, 0.34, [-0.2, 0, 0.2]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (3e6, 9e6, [4e6, 6e6, 8e6]),
    ],
)
def test_ticks_are_round_numbers_within_the_range(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks


def test_an_output_has_to_be_chosen_among_several() -> None:
    with pytest.raises(UserError, match=r"has 2 outputs \('a', 'b'\); pass output= one of them"):
        pick_output(("a", "b"), None)
    with pytest.raises(UserError, match=r"has 5 outputs \('a', 'b', 'c', 'd', …\); pass"):
        pick_output(tuple("abcde"), None)
