"""SECURITY.md promises nothing without a test that holds it."""

import ast
import re
import socket
from pathlib import Path

import numpy as np
import pytest

import nae
from nae.report import write_report

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def is_there(file: str, name: str) -> bool:
    """Return whether a file of tests holds a test; without a name, whether it is there."""
    path = ROOT / file
    if not path.exists():
        return False
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return not name or any(isinstance(node, ast.FunctionDef) and node.name == name for node in body)


def test_every_test_that_is_named_exists() -> None:
    assert [f"{file}::{name}" for file, name in NAMED.findall(TEXT) if not is_there(file, name)] == []


def test_every_promise_names_a_test() -> None:
    promised = TEXT.split("## What is promised")[1].split("## What is not promised")[0]
    promises = re.split(r"^- ", promised, flags=re.MULTILINE)[1:]
    assert len(promises) > 10
    assert [promise for promise in promises if not NAMED.search(promise)] == []


def test_a_test_that_is_not_there_is_noticed() -> None:
    assert not is_there("tests/test_security.py", "test_of_nothing")
    assert not is_there("tests/test_nothing.py", "")
    assert is_there("tests/test_security.py", "test_every_promise_names_a_test")


def test_work_on_a_table_opens_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(AssertionError, match="a connection was opened"):
        socket.create_connection(("127.0.0.1", 9))
    random = np.random.default_rng(0)
    table = {"a": random.normal(size=60), "b": random.normal(size=60)}
    model = nae.NAERegressor(n_members=1, n_experts=2, n_knots=8, max_epochs=2, random_state=0)
    model.fit(table, table["a"]).save(tmp_path / "m.nae")
    nae.load(tmp_path / "m.nae").explain_global()
    write_report(model, table, tmp_path / "r.html")
