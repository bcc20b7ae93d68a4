"""Attacks on promises: a planted violation is found, a kept promise never fails, and the page says what was found."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.certify_speed import Timed
from benchmarks.guarantees.attack import KINDS, Fall, Found, Target, attack
from benchmarks.guarantees.attacks import Attacked, attack_model
from benchmarks.guarantees.cases import CASES, Case, load_case
from benchmarks.guarantees.page import write_page
from benchmarks.guarantees.pools import UNSEEN, make_pools
from benchmarks.guarantees.record import Record
from benchmarks.guarantees.scores import Scored
from benchmarks.guarantees.subjects import SUBJECTS, subject_named, subjects_for
from benchmarks.guarantees.tightness import Bounds, Tight, measure
from benchmarks.models import Budget
from benchmarks.models.ours import NAE
from tests.benchmarks.generated import make_split, make_table, write_table

X = make_table("regression")[0]
CASE = Case("housing", "Generated", "generated", {"grade": 1})


def found(score: Callable[[pd.DataFrame], np.ndarray], *, sign: int = 1, name: str = "size") -> dict[str, Found]:
    pools = make_pools(X)
    target = Target(score, pools, pools.names.index(name), sign)
    return {one.kind: one for one in attack(target, np.random.default_rng(0), spread=2.0, n_attacks=30_000)}


def rising(rows: pd.DataFrame) -> np.ndarray:
    return np.nan_to_num(np.tanh(rows["size"].to_numpy())) + (rows["colour"] == "blue") * rows["grade"].fillna(0.0)


def test_a_kept_promise_is_never_broken_and_the_opposite_one_always() -> None:
    kept, broken = found(rising), found(rising, sign=-1)
    assert set(kept) == set(broken) == set(KINDS)
    assert all(one.n_violations == 0 and one.worst.size == 0 for one in kept.values())
    assert all(one.n_violations > one.n_attacks / 3 and one.n_attacks > 8000 for one in broken.values())
    assert broken["search"].worst.size == pytest.approx(1.0, abs=0.01)  # from one end of tanh to the other


@pytest.mark.parametrize("where", ["missing", "unseen", "far outside", "a corner"])
def test_a_violation_where_no_row_is_is_found(where: str) -> None:
    def score(rows: pd.DataFrame) -> np.ndarray:
        chosen = {
            "missing": rows["grade"].isna(),
            "unseen": rows["colour"] == UNSEEN,
            "far outside": rows["grade"] > 100,
            "a corner": (rows["colour"] == "red") & (rows["grade"] > 3.2),
        }[where]
        return rising(rows) - 0.1 * (chosen & (rows["size"] > 0.5))

    assert sum(one.n_violations for one in found(score).values()) > 0


def test_the_search_makes_a_small_fall_larger() -> None:
    def score(rows: pd.DataFrame) -> np.ndarray:
        years = rows["age [years]"].fillna(0.0).clip(0, 60).to_numpy()
        return -1e-3 * years * np.clip(rows["size"].to_numpy(), -3, 3)

    worst = {kind: one.worst for kind, one in found(score).items()}
    assert worst["search"].size >= max(worst["pairs"].size, worst["sweeps"].size)
    assert worst["search"].size == pytest.approx(1e-3 * 60 * 6 / 2, rel=0.1)
    assert worst["search"].low < worst["search"].high


def test_pools_hold_the_rows_the_middles_and_what_no_row_has() -> None:
    pools = make_pools(X, {"size": [0.123]})
    pd.testing.assert_frame_equal(pools.table(pools.rows), X)
    size, colour = pools.columns["size"], pools.columns["colour"]
    ordered = size.values.to_numpy()[: size.n_ordered]
    assert (np.diff(ordered) > 0).all()
    assert np.isnan(size.values.iloc[-1])
    assert 0.123 in ordered
    assert ordered[0] < -1000 < 1000 < ordered[-1]
    assert set(colour.values.dropna()) == {"red", "green", "blue", UNSEEN}
    assert colour.values.isna().any()


@pytest.mark.parametrize("name", ["lightgbm-basic", "lightgbm", "xgboost", "catboost"])
def test_trees_that_promise_something_are_fitted_and_attacked(name: str) -> None:
    subject, split = subject_named(name), make_split("regression")
    pytest.importorskip(subject.make({}).modules[0], reason="the extra 'bench' brings it")
    budget = Budget(threads=1, n_trees=30)
    n_violations = []
    for is_free in (False, True):
        fitted = subject.fit(CASE, split, budget, is_free=is_free)
        results, spread = attack_model(CASE, subject, fitted, split, 900)
        assert spread > 0
        n_violations.append(sum(one.n_violations for one in results))
    assert n_violations[0] < n_violations[1]


def test_names_of_cases_and_subjects_are_unique_and_families_exist() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    names = {subject.name for subject in SUBJECTS}
    assert len(names) == len(SUBJECTS)
    assert {subject.family for subject in SUBJECTS} - {""} <= names
    assert {subject.name for subject in subjects_for("scores")} >= {"nae", "lightgbm-all", "xgboost"}
    assert not {"lightgbm-all", "xgboost-all"} & {subject.name for subject in subjects_for("attacks")}


def test_counts_become_rates_weighted_by_their_exposure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = make_table("regression")
    exposure = np.random.default_rng(0).uniform(0.1, 1, len(table))
    write_table(tmp_path, "generated", (table.assign(exposure=exposure), np.arange(len(table))))
    monkeypatch.setenv("NAE_DATA", str(tmp_path))
    case = Case("c", "C", "generated", {"grade": 1}, loss="poisson", exposure="exposure", most_rows=300)
    split = load_case(case)
    rows = split.all_train
    assert "exposure" not in rows.X.columns
    assert len(rows) + len(split.test) == 300
    np.testing.assert_allclose(rows.y * rows.weight, np.round(rows.y * rows.weight), atol=1e-9)


def test_the_page_has_rates_falls_refusals_scores_and_ratios(tmp_path: Path) -> None:
    folder = tmp_path / "guarantees"
    kept, fell = (Found("pairs", "MedInc", 2000, n, Fall(size, 1.0, 2.0)) for n, size in ((0, 1e-9), (4, 0.25)))
    attacks, scores = Record(folder / "attacks.json"), Record(folder / "scores.json")
    attacks.put("housing/nae", Attacked("housing", "nae", (kept,), 1.0))
    attacks.put("housing/catboost", Attacked("housing", "catboost", (kept, fell), 1.0))
    attacks.put("quantile/lightgbm", Attacked("quantile", "lightgbm", reason="no such loss"))
    scores.put("housing/0/nae", Scored("housing", "nae", 0, 0.42, 0.44, 4.0, 6.0, 0.05, True))
    scores.put("housing/0/xgboost", Scored("housing", "xgboost", 0, 0.43, 0.48, 2.0, 1.0))
    write_page(folder)
    page = (tmp_path / "guarantees.md").read_text()
    assert "| Housing | MedInc +, HouseAge +, AveOccup − | **0** | – | 1,000 |" in page
    assert "| Housing | MedInc +, HouseAge +, AveOccup − | 1e-09 | – | 25.0% |" in page
    assert "| CatBoost, Housing | MedInc | 1 → 2 | 25.0% | 1,000 |" in page
    assert "* LightGBM, advanced, Housing, quantile 0.9: no such loss." in page
    assert "| Housing | 0.4200 → **0.4400** | 0.4300 → 0.4800 |" in page
    assert "| Housing | 1.50 (6.0 s) | 0.50 (1.0 s) |" in page
    assert "`certify` proves all 3 promises in 0.05 s" in page
    assert attacks.read()["housing/nae"]["found"][0] == asdict(kept)


def test_clamps_tighten_bounds_and_both_kinds_belong_to_one_fit() -> None:
    split = make_split("regression")
    settings = {"n_members": 2, "max_epochs": 8}
    model = NAE(settings=settings).fit(split, Budget(threads=1)).estimator.model_
    found = measure(model, split)
    assert found.data.tightness > found.experts.tightness > 0
    assert 0 < found.data.width < found.experts.width
    assert abs(found.data.score - found.experts.score) < 0.1 * found.experts.score
    fitted = NAE(settings={**settings, "bounds": "experts"}).fit(split, Budget(threads=1))
    assert measure(fitted.estimator.model_, split).data == found.experts


def test_the_page_has_both_bounds_their_ratio_and_clear_losses(tmp_path: Path) -> None:
    folder = tmp_path / "guarantees"
    experts, better, worse = Bounds(0.25, 4.0, 0.9), Bounds(0.5, 3.0, 0.901), Bounds(0.5, 1.0, 0.91)
    Record(folder / "tightness.json").put("compas", Tight("compas", better, experts, 0.001, 3.0))
    Record(folder / "tightness.json").put("housing", Tight("housing", worse, experts, 0.001, 3.0))
    write_page(folder)
    page = (tmp_path / "guarantees.md").read_text()
    assert "| COMPAS, AUC | 0.250 | 0.500 | 2.00 | 0.75 | 0.9000 | 0.9010 | 0.001 ± 0.001 |" in page
    assert "| Housing, RMSE | 0.250 | 0.500 | 2.00 | 0.25 | 0.9000 | 0.9100 | -0.01 ± 0.001 |" in page
    assert "the median tightness is 2.00 times that of the experts' bounds; the median of the ratios is 2.00" in page
    assert "worse by more than two standard errors on Housing (by 1 % of the error)." in page


def test_the_page_has_the_seconds_of_certificates(tmp_path: Path) -> None:
    folder = tmp_path / "guarantees"
    for n in (280, 8):
        for work, seconds in (("monotone", (0.02, 0.5)), ("compare", (1.25,))):
            found = Timed(f"{n} features, additive gate", work, seconds, "1.0")
            Record(folder / "certify.json").put(f"{found.model}/{work}", found)
    write_page(folder)
    page = (tmp_path / "guarantees.md").read_text()
    assert "| 8 features, additive gate | 0.02 / 0.50 | 1.25 |\n| 280 features, additive gate |" in page


def test_an_unknown_model_or_case_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NAE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="Did you mean 'xgboost'"):
        main(["guarantees", "attacks", "--models", "xgbost"])
    with pytest.raises(SystemExit, match="Did you mean 'housing'"):
        main(["guarantees", "scores", "--cases", "huosing"])
