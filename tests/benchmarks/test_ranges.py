"""Widths of ranges are measured, and completions outside of them would be counted."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.guarantees import ranges
from nae.encoding import Number
from tests.laws.models import make_model


def test_ranges_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "N_DRAWN", 16)
    features = tuple(Number(name, np.linspace(0.0, 1.0, 6)) for name in "abc")
    model = make_model(np.random.default_rng(0), features=features)
    rows = pd.DataFrame(np.random.default_rng(1).uniform(size=(8, 3)), columns=list("abc"))
    found = ranges.measure(model, rows, ("a", "b"))
    assert found.n_outside == 0
    assert 0 < found.reached <= found.widths[128] <= found.widths[8] <= found.widths[1]
    assert "| a, b |" in ranges.render([found], 8)


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
