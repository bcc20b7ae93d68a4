"""Widths of ranges are measured, and completions outside of them would be counted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.guarantees import ranges
from benchmarks.guarantees.ranges_page import render_ranges
from benchmarks.guarantees.record import Record
from nae.encoding import Number
from tests.laws.models import make_model


def test_ranges_are_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ranges, "N_DRAWN", 16)
    features = tuple(Number(name, np.linspace(0.0, 1.0, 6)) for name in "abc")
    model = make_model(np.random.default_rng(0), features=features)
    rows = pd.DataFrame(np.random.default_rng(1).uniform(size=(8, 3)), columns=list("abc"))
    found = ranges.measure(model, rows, ("a", "b"))
    assert found.n_outside == 0
    assert 0 < found.reached <= found.widths[128] <= found.widths[8] <= found.widths[1]
    Record(tmp_path / "ranges.json").put("a, b", found)
    assert "| a, b |" in render_ranges(tmp_path)
    assert "| 8 |" in render_ranges(tmp_path)


def test_a_completion_outside_of_its_range_would_be_counted() -> None:
    features = tuple(Number(name, np.linspace(0.0, 1.0, 6)) for name in "ab")
    model = make_model(np.random.default_rng(0), features=features)
    rows = pd.DataFrame({"a": [0.5], "b": [0.5]})
    scores = ranges.completions(model, rows, [0])
    found = model.predict_range(rows, unknown=["a"])
    middle = (found.lower + found.upper) / 2
    assert np.any(scores < middle)
    assert np.any(scores > middle)
    assert np.all((found.lower <= scores) & (scores <= found.upper))
