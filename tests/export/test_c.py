"""Exported C beyond its answers (tests/agreement): the names in it, and who may include it."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nae.encoding import Number
from nae.errors import UserError
from nae.export import to_c, write_c
from nae.tables import TableModel
from tests.laws.models import make_model

MACROS = ("NULL", "NAN", "M_FEATURES", "bool", "class", "new", "F", "exp", "row", "slot")


def named(*names: str) -> TableModel:
    """Return a model of numbers with these names."""
    features = tuple(Number(name, np.array([0.0, 1.0])) for name in names)
    return make_model(np.random.default_rng(0), features=features)


def test_fields_are_as_near_to_the_names_as_c_allows() -> None:
    model = named("int", "9 lives", "int ", "", "a b", "a-b")
    assert to_c(model, "m").fields == ("xint", "x9_lives", "int_", "x", "a_b", "a_b_2")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc reads the exported header")
@pytest.mark.parametrize("kind", ["c++", "c"])
def test_columns_called_like_macros_or_words_of_other_languages_compile(kind: str, tmp_path: Path) -> None:
    if kind == "c++" and shutil.which("g++") is None:
        pytest.skip("g++ reads the exported header as C++")
    write_c(named(*MACROS), tmp_path, name="m")
    (tmp_path / "user").write_text(
        '#include <math.h>\n#include <stddef.h>\n#include "m.h"\nint main(void) { return 0; }\n'
    )
    command = ["gcc", "-x", kind, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(tmp_path / "user")]
    subprocess.run(command, check=True)


def test_the_header_names_several_outputs_in_their_order() -> None:
    model = replace(make_model(np.random.default_rng(0), n_outputs=2), outputs=("q0.05", "q0.95"))
    assert (
        "double prediction[M_PREDICTIONS]; /* predictions of q0.05, q0.95, in this order */" in to_c(model, "m").header
    )


@pytest.mark.parametrize("name", ["int", "a b", "", "2x", "x;"])
def test_a_name_must_be_an_identifier(name: str) -> None:
    with pytest.raises(UserError, match="name must be a C identifier"):
        to_c(named("x"), name)
