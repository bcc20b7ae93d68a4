"""The parameter table: what signatures, docstrings, checks and the page about parameters have in common."""

import inspect
import re
import subprocess
import sys
import typing
from dataclasses import fields
from typing import Any, get_args

import pytest

from nae import NAEClassifier, NAERegressor
from nae.errors import ConfigError
from nae.estimators.docstrings import documented
from nae.network import ENCODERS, GATES
from nae.parameters import (
    ClassParameters,
    Device,
    Encoder,
    Gate,
    LossName,
    NumberParameters,
    Parameters,
    Table,
    Variant,
)
from nae.recipes import CLASSES, NUMBERS, PAPER, RECIPES, VARIANTS, ByRows, Recipe
from nae.training import LOSSES
from tests.estimators.tabulate import PAGE, field_texts, with_tables

TABLES: dict[type, tuple[type[Table], type[Table]]] = {
    NAERegressor: (NumberParameters, Parameters),
    NAEClassifier: (ClassParameters, Parameters),
}
ESTIMATORS = pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)


@ESTIMATORS
def test_a_signature_repeats_names_order_and_defaults_of_the_table(kind: type) -> None:
    found = [(one.name, one.default) for one in inspect.signature(kind).parameters.values()]
    assert found == [(entry.name, entry.default) for table in TABLES[kind] for entry in table.entries()]


@ESTIMATORS
def test_a_signature_names_the_words_of_a_parameter(kind: type) -> None:
    hints = typing.get_type_hints(kind.__init__)
    for table in TABLES[kind]:
        for entry in table.entries():
            if entry.rule.words and entry.rule.interval is None:
                assert get_args(hints[entry.name]) == entry.rule.words


@ESTIMATORS
def test_a_docstring_describes_every_parameter_before_the_attributes(kind: type) -> None:
    assert kind.__doc__ is not None
    headings = re.findall(r"^(\w+)\n-+$", kind.__doc__, re.MULTILINE)
    assert headings == ["Parameters", "Attributes", "Examples"]
    section = kind.__doc__.partition("Parameters\n")[2].partition("Attributes\n")[0]
    assert re.findall(r"^(\w+) : ", section, re.MULTILINE) == list(inspect.signature(kind).parameters)
    for text in re.findall(r"^\w+ : .*\n((?:    .*\n)+)", section, re.MULTILINE):
        assert re.match(r"    [A-Z'].*\.\n$", text, re.DOTALL), text
    assert max(map(len, kind.__doc__.splitlines())) <= 120


def test_a_class_without_a_docstring_stays_without() -> None:
    assert documented(Parameters)(type("Bare", (), {})).__doc__ is None


@pytest.mark.slow
def test_the_estimators_can_be_imported_without_docstrings() -> None:
    code = "import nae; print(nae.NAERegressor().engine, nae.NAEClassifier.__doc__)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["auto", "None"]


def test_the_words_of_the_table_are_those_that_have_a_meaning() -> None:
    assert set(get_args(Gate)) == {"auto", *GATES}
    assert set(get_args(Encoder)) == set(ENCODERS)
    assert set(get_args(Variant)) == set(VARIANTS)
    assert set(get_args(LossName)) <= set(LOSSES)
    assert get_args(Device) == ("auto", "cpu", "cuda")


def test_the_page_about_parameters_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert with_tables(page) == page, "Run: python -m tests.estimators.tabulate"


def test_every_value_of_a_recipe_is_described() -> None:
    assert list(field_texts()) == [one.name for one in fields(Recipe)]
    assert all(re.fullmatch(r"[A-Z].*\.", text) for text in field_texts().values())


def test_defaults_that_are_numbers_are_those_of_the_recipes() -> None:
    for entry in Parameters.entries():
        if hasattr(NUMBERS, entry.name) and entry.default is not None:
            assert {getattr(recipe, entry.name) for recipe in RECIPES.values()} == {entry.default}


def test_a_number_grows_with_the_rows() -> None:
    found = ByRows(((0, 8), (100, 16)))
    assert [found.at(n) for n in (1, 99, 100, 10**9)] == [8, 8, 16, 16]
    assert (found.first, found.last, str(found)) == (8, 16, "8; 16 from 100 rows on")


def test_a_recipe_says_how_it_differs() -> None:
    assert {one.name for one in fields(Recipe) if getattr(CLASSES, one.name) != getattr(NUMBERS, one.name)} == {
        *("n_experts", "n_steered_experts", "hidden_dim", "expert_dropout"),
        *("cooldown", "least_steps", "averaged_steps", "n_looks"),
    }
    assert (PAPER.schedule, NUMBERS.schedule) == ("cosine", "plateau")


@pytest.mark.parametrize(
    ("table", "given", "match"),
    [
        (NumberParameters, {"loss": "sqared"}, r"loss must be one of \['squared', .*\]; got 'sqared'\. Did you mean"),
        (Parameters, {"n_experts": "many"}, r"n_experts must be a whole number in \[1, ∞\) or None; got 'many'"),
        (Parameters, {"additivity": True}, r"additivity must be a number in \[0, 1\], 'auto' or None; got True"),
        (Parameters, {"gate": None}, r"gate must be one of .*; got None"),
    ],
)
def test_a_value_that_breaks_its_rule_is_an_error(table: type[Table], given: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        table.read({entry.name: entry.default for entry in table.entries()} | given)


def test_values_that_follow_their_rules_are_kept_as_they_are() -> None:
    given = {entry.name: entry.default for entry in Parameters.entries()} | {"additivity": "auto", "n_knots": 2}
    assert vars(Parameters.read(given)) == given
