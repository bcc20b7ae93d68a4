"""The benchmark of several quantiles: what is drawn, what is measured, and the page."""

import os
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.datasets import dataset_named
from benchmarks.guarantees.quantiles import MODELS, Outcome, _crossing, draw_rows, measure, render


def test_drawn_rows_hold_known_values_and_others():
    X = pd.DataFrame({"a": np.arange(50.0), "b": np.arange(50) % 3, "c": ["x", "y"] * 25, "d": [True, False] * 25})
    drawn = draw_rows(X, 2000, np.random.default_rng(0))
    assert list(drawn.columns) == list(X.columns)
    for name in "ab":
        assert drawn[name].isna().any()
        assert (drawn[name].abs() > 100).any() or name == "b"
        assert drawn[name].isin(X[name]).mean() > 0.7
    assert set(drawn["c"].dropna()) == {"x", "y", "a level that no row has"}
    assert set(drawn["d"]) == {True, False}


def test_a_row_crosses_once_however_often_its_quantiles_do():
    assert _crossing(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 1.0, 1.0], [1.0, 3.0, 2.0]])) == 0.5


def test_the_page_has_a_line_for_every_model():
    outcomes = {name: [Outcome(*np.linspace(0.1, 0.7, len(fields(Outcome))).tolist())] * 2 for name in MODELS}
    page = render({"Housing": outcomes}, n_splits=2)
    assert page.count("| Housing |") == len(MODELS)
    assert "± 0.1414" in page
    assert "means over 2 splits" in page


def test_a_split_is_fitted_once(tmp_path, monkeypatch):
    asked = []

    def measure_here(dataset, *, seed, threads):
        asked.append((dataset.name, seed, threads))
        return {name: Outcome(*np.full(len(fields(Outcome)), seed + 0.25).tolist()) for name in MODELS}

    monkeypatch.setattr("benchmarks.guarantees.quantiles.measure", measure_here)
    words = ["guarantees", "quantiles", "--tables", "housing", "--threads", "1", "--store", str(tmp_path / "a.jsonl")]
    main([*words, "--splits", "1", "--out", str(tmp_path / "one.md")])
    main([*words, "--splits", "2", "--out", str(tmp_path / "two.md")])
    assert asked == [("housing", 0, 1), ("housing", 1, 1)]
    assert "| Housing | one model | 0.7500 " in (tmp_path / "two.md").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("NAE_DATA"), reason="NAE_DATA does not name a folder of tables")
def test_one_model_never_crosses_on_a_real_table():
    if not (Path(os.environ["NAE_DATA"]) / "concrete.parquet").exists():
        pytest.skip("the table is not in the folder that NAE_DATA names")
    pytest.importorskip("lightgbm")
    quick = {"n_members": 2, "max_epochs": 40}
    found = measure(dataset_named("concrete"), seed=0, threads=1, n_drawn=20_000, **quick)
    assert found["one model"].crossing == found["one model"].crossing_drawn == 0
    assert found["a model for each"].crossing_drawn > 0
    assert found["LightGBM"].crossing_drawn > 0
    assert found["one model"].pinball < 1.1 * found["a model for each"].pinball
