"""Small tables: the panel, how a draw is made, and what the page says."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss

from benchmarks.__main__ import main
from benchmarks.models import Budget
from benchmarks.small.command import loss_of, plan
from benchmarks.small.models import MODELS
from benchmarks.small.page import render
from benchmarks.small.panel import CASES, PANEL, SIZES, draw

BUNDLED = [case for case in PANEL if case.name in {"Diabetes", "Iris", "noise", "coin", "line"}]


def test_the_panel_has_tables_of_40_to_500_rows_and_every_size_from_20_to_600() -> None:
    assert len({case.label for case in PANEL}) == len(PANEL) >= 15
    assert all(40 <= case.n_train <= 500 for case in PANEL)
    assert {20, 256, 257, 600} <= {case.n_train for case in SIZES}


@pytest.mark.parametrize("case", BUNDLED, ids=lambda case: case.label)
def test_a_draw_has_its_rows_every_class_twice_and_other_rows_to_test_on(case) -> None:
    first, other = draw(case, 0), draw(case, 1)
    assert len(first.all_train) == case.n_train
    assert first.n_classes == (0 if case.task == "regression" else len(np.unique(first.test.y)))
    if first.n_classes:
        assert np.bincount(first.all_train.y).min() >= 2
    assert not first.train.X.equals(other.train.X)
    rows = [set(map(tuple, part.X.to_numpy())) for part in (first.all_train, first.test)]
    assert len(rows[0] & rows[1]) <= (1 if case.name == "Iris" else 0)  # which has a flower twice


def test_losses_are_root_mean_squares_and_log_losses() -> None:
    assert loss_of(np.array([1.0, 3.0]), np.array([1.0, 1.0]), task="regression") == pytest.approx(np.sqrt(2))
    y, shares = np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    assert loss_of(y, shares, task="binary") == pytest.approx(log_loss(y, shares))


@pytest.mark.parametrize("name", ["constant", "linear"])
@pytest.mark.parametrize("case", ["line, 40 rows", "Iris, 75 rows"])
def test_the_simple_models_predict_what_they_should(name: str, case: str) -> None:
    split = draw(CASES[case], 0)
    predicted = MODELS[name][1].fit(split, Budget(threads=1)).predict(split.test.X)
    known = MODELS["constant"][1].fit(split, Budget(threads=1)).predict(split.test.X)
    loss, constant = (loss_of(split.test.y, found, task=split.dataset.task) for found in (predicted, known))
    assert loss == constant if name == "constant" else loss < 0.9 * constant


def test_ours_is_fitted_on_sizes_too_and_again_with_another_version() -> None:
    trials = list(plan(["nae", "linear"], 2))
    assert {trial.version for trial in trials if trial.model == "linear"} == {""}
    ours = {trial.case for trial in trials if trial.model == "nae"}
    assert {case.label for case in (*PANEL, *SIZES)} == ours
    assert len([trial for trial in trials if trial.model == "linear"]) == 2 * len(PANEL)


def test_the_page_compares_on_the_draws_that_all_models_have() -> None:
    label = PANEL[0].label
    losses = {
        "nae": {label: {0: 1.0, 1: 9.0}},
        "linear": {label: {0: 2.0}},
        "ebm": {label: {0: 1.25}},
        "constant": {label: {0: 4.0}},
    }
    page = render(losses)
    assert f"| {label} | **1.000** | 2.000 | 1.250 | 4.000 |" in page
    assert "| mean rank | 1.00 | 3.00 | 2.00 | 4.00 |" in page
    assert "| loss / better of linear and EBM, mean | 0.800 | 1.600 | 1.000 | 3.200 |" in page
    assert "| loss / that of the mean, at worst | 0.250 | 0.500 | 0.312 | 1.000 |" in page


def test_an_unknown_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"A model must be one of .*; got 'linaer'\. Did you mean 'linear'"):
        main(["small", "--models", "linaer", "--store", str(tmp_path / "s.jsonl"), "--out", str(tmp_path / "p.md")])
