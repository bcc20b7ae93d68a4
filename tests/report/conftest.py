from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.browsing import start_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with start_browser() as started:
        yield started
