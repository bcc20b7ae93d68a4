"""Room for evaluators: a folder per test, and one page in one browser per module."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.evaluators import Room
from tests.report.browsing import start_browser


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with start_browser() as browser:
        yield browser.new_page()


@pytest.fixture
def room(tmp_path: Path, request: pytest.FixtureRequest) -> Room:
    return Room(tmp_path, lambda: request.getfixturevalue("page"))
