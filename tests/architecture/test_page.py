"""The page about the architecture names functions and files that exist."""

import re
from pathlib import Path

import pytest

import nae
from tests.architecture.draw import PAGE

LIBRARY = Path(nae.__file__).parent
TEXT = PAGE.read_text()
FILES = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)", TEXT)))
NAMED = sorted(set(re.findall(r"`(?:[A-Za-z]+\.)?(\w+)`\s\(`([a-z_/]+\.py)`", TEXT)))


@pytest.mark.parametrize("file", FILES)
def test_every_file_that_is_named_exists(file: str) -> None:
    assert (LIBRARY / file).exists() or (LIBRARY.parents[1] / file).exists()


@pytest.mark.parametrize(("name", "file"), NAMED)
def test_every_function_and_class_is_where_the_page_says(name: str, file: str) -> None:
    assert re.search(rf"^ *(def|class) {name}\b", (LIBRARY / file).read_text(), re.MULTILINE)


def test_the_walk_names_the_steps() -> None:
    assert {"learn", "prepare_table", "fit_model", "train", "assemble", "interpolate", "explain_local"} <= {
        name for name, _ in NAMED
    }
    assert {file.partition("/")[0] for file in FILES} >= {"encoding", "network", "training", "tables", "explanation"}
