"""What all tests share: one thread per worker, and property tests that draw the same examples every time."""

import os
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.scheduling import make_scheduler, rank_of

# Examples are drawn from the test's own source, so a run repeats; HYPOTHESIS_PROFILE=search looks for new ones.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", settings.get_profile("default"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the native core, and for processes that tests start


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: rank_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return make_scheduler(config, log)
