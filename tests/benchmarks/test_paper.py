import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks.paper import search
from benchmarks.paper.described import describe, describe_ebm, read_global, read_interaction
from benchmarks.paper.experiment import Results
from benchmarks.paper.fitting import parameters_of
from benchmarks.paper.pages import Places, gather
from benchmarks.paper.pool import Limits, carry_out_all
from benchmarks.paper.registry import EXPERIMENTS, chosen, laptop_runs, ordered, smoke_runs
from benchmarks.paper.runs import DEFAULT, PAPER, TABLE, Run, default_run, paper_run, settings
from benchmarks.paper.store import Report, RunStore
from benchmarks.paper.tables import read
from benchmarks.paper.theory import approximation_errors, pair_by_experts, product_by_experts
from benchmarks.paper.timing import _config, _network, count_parameters
from benchmarks.paper.verdicts import Figure, Line, Measured, comparison, judge
from nae import NAERegressor
from nae.errors import ConfigError, FormatError


def test_settings_in_another_order_are_the_same_run() -> None:
    assert paper_run("housing", n_experts=8, n_active=4) == paper_run("housing", n_active=4, n_experts=8)
    assert paper_run("housing", n_experts=8).path == "housing/paper.n_experts-8/seed-0"


def test_a_run_is_read_back_as_it_was() -> None:
    run = default_run("multimodal", options=settings(minority=0.05), seed=2, n_experts=8)
    assert Run.from_dict(json.loads(run.dumps())) == run
    with pytest.raises(FormatError, match="A run must have the fields"):
        Run.from_dict({"data": "housing"})


def test_no_two_runs_share_a_folder_and_names_are_short_and_plain() -> None:
    runs = ordered(EXPERIMENTS)
    paths = [run.path for run in runs]
    assert len(set(paths)) == len(set(runs)) == len(runs)
    for path in paths:
        assert max(map(len, path.split("/"))) < 200
        assert set(path) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")


def test_ours_on_a_first_seed_come_first_and_timed_runs_last() -> None:
    runs = ordered(EXPERIMENTS)
    first = next(run for run in runs if run.model != TABLE)
    assert first.model == PAPER
    assert first.is_first
    timed = [run.is_timed for run in runs]
    assert timed == sorted(timed)


def test_an_unknown_experiment_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"got 'acuracy'.*accuracy"):
        chosen(["acuracy"])


def test_a_setting_that_names_experts_lets_all_of_them_take_part() -> None:
    assert parameters_of(paper_run("housing"))["n_active"] == 4
    assert parameters_of(paper_run("housing", n_experts=8))["n_active"] is None
    assert parameters_of(paper_run("housing", n_experts=8, n_active=2))["n_active"] == 2
    assert parameters_of(default_run("housing")) == {"bounds": "experts"}


def test_folds_part_the_rows() -> None:
    splits = [read(Run("income", DEFAULT, fold=number, is_smoke=True)) for number in range(5)]
    assert sum(len(split.test) for split in splits) == 400
    assert all(abs(split.test.y.mean() - 0.5) < 0.02 for split in splits)
    with pytest.raises(ConfigError, match=r"A fold must be in \[0, 4\]; got 5"):
        read(Run("income", DEFAULT, fold=5, is_smoke=True))


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((0.452,), "reproduced"),
        ((0.449, 0.453), "reproduced"),
        ((0.42,), "better"),
        ((0.48,), "not"),
        ((), "not run"),
    ],
)
def test_a_verdict_follows_from_spread_and_direction(values: tuple[float, ...], verdict: str) -> None:
    line = Line("NAE", Figure(0.451, 0.002), Measured(values))
    assert judge(line.mode, line.paper, line) == verdict


def test_a_number_that_is_neither_good_nor_bad_is_never_better() -> None:
    line = Line("additivity", Figure(0.6), Measured((0.9,)), is_lower_better=None, tolerance=0.1)
    assert judge(line.mode, line.paper, line) == "not"


def test_a_comparison_shows_both_columns_with_differences() -> None:
    text = comparison([Line("NAE", Figure(0.451, 0.002), Measured((0.45,)), Measured((0.42,)))])
    assert "| NAE | 0.451 ± 0.002 | 0.450 | −0.001 | reproduced | 0.420 | −0.031 | better |" in text


def test_a_failed_run_is_tried_again_and_does_not_hide_a_report(tmp_path: Path) -> None:
    store, places = RunStore(tmp_path / "runs"), Places(tmp_path / "results", tmp_path / "page.md")
    run = paper_run("housing")
    store.begin(run)
    store.finish(Report(run, rmse=0.45))
    assert store.is_done(run)
    assert gather(store, places, []).measured([run], "rmse").values == (0.45,)
    store.begin(run)
    store.finish(Report(run, is_done=False, reason="its process died"))
    assert not store.is_done(run)
    found = gather(store, places, [])
    assert found.measured([run], "rmse").values == (0.45,)


def test_pages_need_only_what_is_kept_with_the_repository(tmp_path: Path) -> None:
    store, places = RunStore(tmp_path / "runs"), Places(tmp_path / "results", tmp_path / "page.md")
    run = paper_run("housing")
    store.begin(run)
    curves = [{"name": "Longitude", "mean": 1}, {"name": "Latitude", "mean": 2}]
    store.finish(Report(run, rmse=0.45), {"global": {"features": curves}, "pair": {}})
    drawn = replace(EXPERIMENTS[0], drawn=lambda: (run,), features=("Longitude",))
    first = gather(store, places, [drawn])
    second = gather(RunStore(tmp_path / "nothing"), places, [drawn])
    assert first.reports == second.reports
    assert first.explanations == second.explanations == {run.path: {"global": {"features": curves[:1]}}}


def test_runs_that_are_not_there_have_no_numbers() -> None:
    results = Results({})
    assert results.report(paper_run("housing")) is None
    assert results.measured([paper_run("housing")], "rmse").values == ()
    assert results.shapes(paper_run("housing")) is None


def test_two_experts_make_a_product() -> None:
    random = np.random.default_rng(0)
    u, v = random.normal(size=7), random.uniform(-1, 1, size=5)
    np.testing.assert_allclose(product_by_experts(u, v, scale=1.5), np.outer(u, v), atol=1e-12)


def test_one_softmax_over_all_experts_does_as_well_as_products() -> None:
    values = np.random.default_rng(0).normal(size=(12, 12))
    errors = approximation_errors(values)
    for n_terms in (1, 4):
        found = np.abs(values - pair_by_experts(values, n_terms)).max()
        assert found == pytest.approx(errors[n_terms - 1], abs=1e-9)
    assert errors[-1] > 1e-3


def test_parameters_follow_the_papers_formula() -> None:
    encoder = 4 * 128 * 128 - 128 * 128 + 4 * 128 + 128  # three square layers and one from a number, with biases
    norms = 4 * 2 * 128
    n, k, d = 3, 4, 128
    whole = count_parameters(n, n_experts=k)
    assert whole == n * (encoder + norms) + n * k * ((n + 1) * d + 2) + 1


@pytest.mark.parametrize("variant", ["nae", "nae-d"])
@pytest.mark.parametrize(("n_features", "n_experts"), [(1, 1), (4, 3), (7, 2)])
def test_parameters_that_are_not_allocated_are_those_of_a_network(
    n_features: int, n_experts: int, variant: str
) -> None:
    network = _network(n_features, _config(n_experts, 8, variant))
    counted = count_parameters(n_features, n_experts=n_experts, hidden_dim=8, variant=variant)
    assert counted == sum(array.size for array in network.arrays.values())


def test_an_ebm_shows_its_pairs_as_bounds() -> None:
    from interpret.glassbox import ExplainableBoostingRegressor

    split = read(Run("housing", "ebm", is_smoke=True))
    pairs = [("Longitude", "Latitude")]
    model = ExplainableBoostingRegressor(interactions=pairs, max_rounds=40, outer_bags=1, n_jobs=1)
    model.fit(split.train.X, split.train.y)
    found = describe_ebm(model, split)
    shape = read_global(found).feature("Longitude")
    assert (shape.lower <= shape.mean).all()
    assert (shape.upper - shape.lower).max() > 0
    assert read_interaction(found, "pair").total.shape == (56, 56, 1)


def test_a_thinned_curve_keeps_weights_and_means() -> None:
    split = read(Run("unimodal", PAPER, is_smoke=True))
    estimator = NAERegressor(n_members=1, max_epochs=1, n_knots=300, random_state=0, n_jobs=1)
    model = estimator.fit(split.train.X, split.train.y).model_
    whole = model.explain_global().feature("x1")
    thin = read_global(describe(model, split)).feature("x1")
    assert len(thin.labels) < len(whole.labels)
    assert thin.weight.sum() == pytest.approx(whole.weight.sum(), abs=1e-2)
    assert thin.weight @ thin.mean[:, 0] == pytest.approx(whole.weight @ whole.mean[:, 0], abs=1e-2)


def test_trials_go_on_where_they_ended(tmp_path: Path) -> None:
    path = tmp_path / "trials.json"
    first = search.draw_trials(1, path)
    again = search.draw_trials(2, path)
    assert again[:1] == first
    assert search.draw_trials(2, path) == again == search.known_trials(path)
    assert search.draw_trials(2, tmp_path / "other.json") == again
    assert search.trial_run(again[0]).model == PAPER


@pytest.mark.slow
def test_workers_carry_out_runs_and_outlive_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = RunStore(tmp_path)
    good, bad = (Run("generic", model, is_smoke=True) for model in ("linear", "no such model"))
    carry_out_all([bad, good], store, device="cpu", n_workers=1, limits=Limits(run=120.0))
    assert store.is_done(good)
    assert not store.is_done(bad)
    reasons = {report.run.model: report.reason for report in store.reports()}
    assert reasons["no such model"] == "its process died"
    assert "generic/linear/seed-0  rmse" in capsys.readouterr().out


def test_a_run_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    store, run = RunStore(tmp_path), Run("generic", "linear", is_smoke=True)
    carry_out_all([run], store, device="cpu", n_workers=1, limits=Limits(run=0.05))
    [report] = store.reports()
    assert report.reason == "was given up after 0 s"


def test_the_command_lists_what_is_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["paper", "list", "--store", str(tmp_path)])
    assert f"{len(ordered(EXPERIMENTS))} runs to do" in capsys.readouterr().out


def test_runs_can_be_asked_for_by_table_and_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["paper", "list", "--tables", "income", "--models", "linear", "--store", str(tmp_path)])
    assert capsys.readouterr().out.startswith("5 runs to do")


def test_a_laptop_is_spared_what_takes_long_and_what_is_timed() -> None:
    runs = ordered(EXPERIMENTS)
    kept = laptop_runs(runs)
    assert 0 < len(kept) < len(runs)
    assert not any(run.is_timed for run in kept)
    assert paper_run("housing") not in kept
    assert paper_run("multimodal") in kept


def test_smoke_runs_are_few_and_small() -> None:
    runs = smoke_runs(EXPERIMENTS)
    assert all(run.is_smoke and run.is_first for run in runs)
    assert len({run.model for run in runs}) > 3
