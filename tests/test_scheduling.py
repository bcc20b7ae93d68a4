"""How processes share the tests: files stay together, and nothing that takes long is left for the end."""

from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.scheduling import LONGEST, TOGETHER, make_scheduler, rank_of, unit_of

ROOT = Path(__file__).parents[1]


class Process:
    """What the scheduler knows of a process: it takes the places of tests in the collection."""

    gateway = SimpleNamespace(id="a process")
    shutting_down = False

    def __init__(self) -> None:
        self.taken: list[int] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.taken += places

    def shutdown(self) -> None:
        self.shutting_down = True


def distributed(tests: list[str], n_processes: int) -> list[list[str]]:
    """Return the tests that each process runs if all tests take equally long."""
    asked = {"tx": ["popen"] * n_processes}
    scheduler = make_scheduler(SimpleNamespace(getvalue=asked.get, option=SimpleNamespace()), None)
    processes = [Process() for _ in range(n_processes)]
    for one in processes:
        scheduler.add_node(one)
        scheduler.add_node_collection(one, tests)
    scheduler.schedule()
    done = 0
    while any(done < len(one.taken) for one in processes):
        for one in processes:
            if done < len(one.taken):
                scheduler.mark_test_complete(one, one.taken[done])
        done += 1
    return [[tests[place] for place in one.taken] for one in processes]


def test_every_test_runs_once_and_those_of_a_file_in_one_process() -> None:
    tests = [f"tests/test_{name}.py::test_it[{i}]" for name in "abcde" for i in range(4)]
    found = distributed(tests, 2)
    assert sorted(test for own in found for test in own) == tests
    files = [{unit_of(test) for test in own} for own in found]
    assert files[0] & files[1] == set()
    assert all(len(own) >= 2 for own in files)


def test_files_are_handed_out_in_the_order_of_the_tests() -> None:
    tests = ["tests/test_long.py::test_it", *(f"tests/test_short.py::test_it[{i}]" for i in range(9))]
    assert distributed(tests, 1) == [tests]


def test_a_unit_is_a_file_or_files_that_share_something() -> None:
    assert unit_of("tests/laws/test_bounds.py::test_it[a::b]") == "tests/laws/test_bounds.py"
    for starts in TOGETHER.values():
        assert len({unit_of(f"{start}test_one.py::test_it") for start in starts}) == 1
    assert len({unit_of(f"tests/packaging/test_{name}.py::test_it") for name in ("wheel", "source")}) == 1
    assert len({unit_of(f"tests/laws/test_{name}.py::test_it") for name in ("bounds", "totals")}) == 2


def test_what_takes_long_comes_first() -> None:
    names = [f"{name}::test_it" for name in (LONGEST[2], "tests/test_card.py", LONGEST[0])]
    assert sorted(names, key=rank_of) == [names[2], names[0], names[1]]


@pytest.mark.parametrize("name", sorted({*LONGEST, *chain(*TOGETHER.values())}))
def test_names_are_those_of_files_and_folders(name: str) -> None:
    assert (ROOT / name).exists()
    assert name.endswith(("/", ".py"))
