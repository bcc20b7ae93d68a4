import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from benchmarks.effects.command import measure
from benchmarks.effects.page import render
from benchmarks.effects.simulations import CASES, draw
from benchmarks.effects.verdicts import chances
from nae import NAEClassifier, NAERegressor, load, plots
from nae._typing import Array
from nae.encoding import Category, Number
from nae.errors import ConfigError, FormatError
from nae.explanation import with_statistics
from nae.tables import TableModel
from nae.tables.archive import pack
from nae.tables.evidence import Evidence
from nae.uncertainty.effects import EffectRows, measure_effects
from nae.uncertainty.effects.basis import Basis, make_basis
from nae.uncertainty.effects.families import Family, family_of
from nae.uncertainty.effects.smoothing import fit_additive
from nae.uncertainty.effects.squares import Sample
from nae.uncertainty.effects.testing import chance_of_curves, chance_of_products
from tests.laws.models import make_model

FEATURES = (
    Number("curve", np.linspace(0, 1, 41)),
    Number("idle", np.linspace(0, 1, 41)),
    Category("level", ("a", "b", "c")),
)


def idle_model(n_experts: int = 1, loss: str = "squared", **shape: Any) -> TableModel:
    """Return a model without any effects, which has learned nothing."""
    model = make_model(np.random.default_rng(0), features=FEATURES, n_experts=n_experts, **shape)
    model.experts[:], model.intercept[:] = 0.0, 0.0
    return model.with_training(loss=loss)


def rows_of(seed: int, n_rows: int, effect: Any, noise: float = 1.0) -> tuple[dict[str, Any], Array, Array]:
    """Return a table, a target, and the true effect of the curve."""
    random = np.random.default_rng(seed)
    X = {
        "curve": random.uniform(size=n_rows),
        "idle": random.uniform(size=n_rows),
        "level": random.choice(list("abc"), n_rows),
    }
    truth = effect(X["curve"]) + 0.0 * X["curve"]
    return X, truth + noise * random.standard_normal(n_rows), truth - truth.mean()


def evidence_of(model: TableModel, X: dict[str, Any], y: Array, weight: Array | None = None) -> Evidence:
    model = with_statistics(model, X, sample_weight=weight)
    nothing = np.zeros((len(y), 1))
    rows = EffectRows(model.cells(X), y[:, None], nothing, np.ones(len(y)) if weight is None else weight)
    found = measure_effects(model, rows).evidence
    assert found is not None
    return found


def plain_sample(seed: int = 0, n_rows: int = 200) -> tuple[Sample, Basis]:
    X, y, _ = rows_of(seed, n_rows, lambda x: 3 * x)
    model = with_statistics(idle_model(), X)
    basis = make_basis(model.schema, model.statistics.weight)
    columns = basis.columns(model.cells(X))
    return Sample(columns, y, np.zeros(n_rows), np.ones(n_rows), np.zeros((n_rows, 3))), basis


# --- the additive fit


def test_the_columns_are_curves_that_average_zero_over_the_rows() -> None:
    sample, basis = plain_sample()
    assert np.abs(sample.columns.mean(axis=0)).max() < 1e-9
    for part, curve in zip(basis.parts, basis.curves, strict=True):
        assert part.stop - part.start == curve.table.shape[1]
        assert np.allclose(np.ptp(curve.table[: len(curve.has_rows) - 2].sum(axis=1)), 0)  # hats add up to one


@pytest.mark.parametrize("family", [Family("identity"), Family("logit"), Family("log", 1.0), Family("log", 1.5)])
def test_a_row_pulls_its_score_to_where_its_mean_is_the_target(family: Family) -> None:
    score, step = np.linspace(-2, 2, 9), 1e-6
    mean = {"identity": score, "logit": 1 / (1 + np.exp(-score)), "log": np.exp(score)}[family.link]
    weight, pull = family.pull(mean, score)
    assert np.abs(pull).max() < 1e-12
    moved = {"identity": score + step, "logit": 1 / (1 + np.exp(-score - step)), "log": np.exp(score + step)}[
        family.link
    ]
    assert family.pull(moved, score)[1] == pytest.approx(np.full(9, step), rel=1e-3)
    assert np.all(weight > 0)


def test_losses_without_a_family_have_none() -> None:
    assert family_of("quantile", None) is family_of("absolute", None) is None
    assert family_of("tweedie", 1.3) == Family("log", 1.3)


def test_the_covariance_is_that_of_refits_with_new_noise() -> None:
    X, _, _ = rows_of(0, 300, np.sin)
    curves = []
    for seed in range(60):
        y = np.sin(6 * X["curve"]) + np.random.default_rng(seed).standard_normal(300)
        found = evidence_of(idle_model(), X, y)
        curves.append((found.centre[:41, 0], found.error[:41, 0]))
    spread, error = np.std([one for one, _ in curves], axis=0), np.mean([one for _, one in curves], axis=0)
    assert np.sqrt(np.mean(spread**2)) == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.35)
    assert np.sqrt(np.mean(error**2)) >= 0.95 * np.sqrt(np.mean(spread**2))


def test_a_weight_of_two_is_the_row_twice() -> None:
    X, y, _ = rows_of(0, 150, np.sin)
    weight = np.repeat([1.0, 2.0, 0.0], 50)
    twice = np.repeat(np.arange(150), weight.astype(int))
    one = evidence_of(idle_model(), X, y, weight)
    other = evidence_of(idle_model(), {name: column[twice] for name, column in X.items()}, y[twice])
    assert one.centre == pytest.approx(other.centre, abs=1e-6)
    assert one.error == pytest.approx(other.error, rel=1e-4)


def test_an_order_of_the_rows_changes_nothing() -> None:
    X, y, _ = rows_of(0, 150, np.sin)
    order = np.random.default_rng(1).permutation(150)
    one = evidence_of(idle_model(), X, y)
    other = evidence_of(idle_model(), {name: column[order] for name, column in X.items()}, y[order])
    assert one.centre == pytest.approx(other.centre, abs=1e-6)
    assert one.chance == pytest.approx(other.chance, abs=1e-6)


def test_other_units_of_the_target_change_the_units_of_the_band_alone() -> None:
    X, y, _ = rows_of(0, 150, np.sin)
    one, other = evidence_of(idle_model(), X, y), evidence_of(idle_model(), X, 1e4 * y + 7)
    assert other.error == pytest.approx(1e4 * one.error, rel=1e-4)
    assert other.chance == pytest.approx(one.chance, abs=1e-5)


# --- what is claimed: coverage and false alarms, without a network


@pytest.mark.parametrize("effect", [lambda x: 0 * x, lambda x: 2 * x, lambda x: np.sin(6 * x)])
def test_bands_hold_the_truth_as_often_as_they_say(effect: Any) -> None:
    inside = []
    for seed in range(30):
        X, y, truth = rows_of(seed, 200, effect)
        model = with_statistics(idle_model(), X)
        found = evidence_of(model, X, y)
        error, centre = (np.interp(X["curve"], FEATURES[0].knots, one[:41, 0]) for one in (found.error, found.centre))
        inside.append(np.mean(np.abs(truth - centre) <= 1.645 * error))
    assert 0.84 <= np.mean(inside) <= 0.99


def test_few_idle_features_are_taken_for_more() -> None:
    chances = np.concatenate(
        [evidence_of(idle_model(), *rows_of(seed, 200, np.sin)[:2]).chance[1:] for seed in range(60)]
    )
    assert np.mean(chances <= 0.05) <= 0.09
    assert np.mean(chances <= 0.5) <= 0.6


def test_a_feature_that_only_turns_another_round_is_not_noise() -> None:
    random = np.random.default_rng(0)
    X, y, _ = rows_of(0, 400, lambda x: 0 * x, noise=0.5)
    sign = random.choice([-1.0, 1.0], 400)
    X = {**X, "level": np.where(sign > 0, "a", "b")}
    found = evidence_of(idle_model(n_experts=2), X, y + sign * np.sin(6 * X["curve"]))
    assert found.chance[0, 0] < 1e-3
    assert found.chance[2, 0] < 1e-3
    assert found.chance[1, 0] > 0.05


def test_few_idle_features_have_products() -> None:
    chances = []
    for seed in range(40):
        sample, basis = plain_sample(seed)
        fit = fit_additive(sample, basis, Family("identity"), start=0.0)
        chances.append(chance_of_products(sample, basis, fit))
        assert chance_of_curves(basis, fit, is_exact=False)[0] < 0.05
    assert np.mean(np.concatenate(chances) <= 0.05) <= 0.1


# --- the band


def test_a_band_holds_the_shown_effect_and_grows_with_its_coverage() -> None:
    X, y, _ = rows_of(0, 200, np.sin)
    model = with_statistics(idle_model(), X)
    found = evidence_of(model, X, y)
    mean = model.statistics.mean
    narrow, wide = found.band(mean, 0.5), found.band(mean, 0.95)
    known = found.error[:, 0] > 0
    assert np.all(wide[0][known] <= narrow[0][known])
    assert np.all((narrow[0] <= mean)[known] & (mean <= narrow[1])[known])
    assert np.isnan(wide[0][~known]).all()
    for coverage in (0.0, 1.0, 90):
        with pytest.raises(ConfigError, match=r"coverage must be in \(0, 1\)"):
            found.band(mean, coverage)


def test_missing_values_and_rare_levels_have_bands_of_their_own() -> None:
    random = np.random.default_rng(0)
    levels = tuple(f"l{i}" for i in range(80))
    features = (Number("x", np.linspace(0, 1, 30), has_missing=True), Category("c", levels))
    model = make_model(random, features=features, n_experts=1).with_training(loss="squared")
    model.experts[:], model.intercept[:] = 0.0, 0.0
    x = np.where(random.uniform(size=900) < 0.2, np.nan, random.uniform(size=900))
    c = np.array(levels)[np.minimum(random.geometric(0.05, 900), 80) - 1]
    y = np.where(np.isnan(x), 3.0, 0.0) + random.standard_normal(900)
    found = evidence_of(model, {"x": x, "c": c}, y)
    assert found.centre[30, 0] > 2
    assert 0 < found.error[30, 0] < 0.3
    assert found.error[31, 0] == 0


# --- fits, files and explanations


@pytest.fixture(scope="module")
def fitted() -> NAERegressor:
    X, y, _ = rows_of(0, 300, lambda x: 3 * x)
    return NAERegressor(n_members=2, max_epochs=10, random_state=0, n_jobs=1).fit(X, y)


def test_a_fit_says_what_cannot_be_told_from_noise(fitted: NAERegressor) -> None:
    found = fitted.explain_global()
    assert [shape.is_noise for shape in found.features] == [False, True, True]
    assert repr(found).count("cannot be told from noise") == 2
    assert "noise" in repr(found.feature("idle"))
    frame = found.to_frame(level="features")
    assert frame["is_noise"].tolist() == [False, True, True]
    assert frame["chance"][0] < 1e-6


def test_an_explanation_has_bands_of_the_coverage_that_is_asked_for(fitted: NAERegressor) -> None:
    found, wide = fitted.explain_global(), fitted.explain_global(coverage=0.99)
    assert (found.coverage, wide.coverage) == (0.9, 0.99)
    one, other = found.feature("level"), wide.feature("level")
    assert one.effect_lower.shape == one.mean.shape
    assert np.nanmax(one.effect_upper - other.effect_upper) < 0
    frame = found.to_frame()
    assert np.nanmax(frame["effect_lower"] - frame["mean"]) <= 0
    again = type(found).from_json(found.to_json())
    assert again.feature("level").effect_upper == pytest.approx(one.effect_upper, nan_ok=True)


def test_evidence_survives_a_file_and_turns_with_the_class(tmp_path: Path) -> None:
    X, y, _ = rows_of(0, 200, lambda x: 3 * x)
    model = NAEClassifier(n_members=1, max_epochs=3, random_state=0).fit(X, np.where(y > 1, "yes", "no"))
    model.save(tmp_path / "m.nae")
    again = load(tmp_path / "m.nae")
    for name, array in model.model_.evidence.to_arrays().items():
        assert getattr(again.evidence, name).tolist() == array.tolist()
    turned = again.for_class("no").evidence
    assert turned.centre.tolist() == (-again.evidence.centre).tolist()
    assert turned.error.tolist() == again.evidence.error.tolist()


def test_a_file_with_impossible_evidence_is_refused(fitted: NAERegressor) -> None:
    model = fitted.model_
    for changes, complaint in (
        ({"error": -model.evidence.error}, r"'evidence.error' must not be negative"),
        ({"chance": 2 + model.evidence.chance}, r"'evidence.chance' must be in \[0, 1\]"),
        ({"centre": model.evidence.centre[1:]}, r"'evidence.centre' must have shape"),
    ):
        with pytest.raises(FormatError, match=complaint):
            pack(replace(model, evidence=replace(model.evidence, **changes)))


def test_several_classes_have_verdicts_and_no_bands() -> None:
    X, y, _ = rows_of(0, 300, lambda x: 3 * x)
    model = NAEClassifier(n_members=1, max_epochs=3, random_state=0).fit(X, np.digitize(y, (1.0, 2.0)))
    found = model.explain_global()
    assert [shape.is_noise for shape in found.features] == [False, True, True]
    assert found.features[0].chance.shape == (3,)
    assert (found.coverage, found.features[0].effect_lower) == (None, None)
    ax = plots.shape(found, "curve", output=0)
    assert not any("sure" in text.get_text() for text in ax.get_legend().get_texts())
    plt.close("all")


def test_without_evidence_nothing_is_claimed() -> None:
    X, y, _ = rows_of(0, 120, lambda x: 3 * x)
    model = NAERegressor("quantile", n_members=1, max_epochs=2, random_state=0).fit(X, y)
    assert model.model_.evidence is None
    found = model.explain_global()
    assert found.coverage is None
    assert found.features[0].effect_lower is None
    assert not any(shape.is_noise for shape in found.features)
    assert "verdict" not in repr(found)


def test_too_few_rows_say_nothing() -> None:
    X, y, _ = rows_of(0, 40, np.sin)
    model = with_statistics(idle_model(), X)
    rows = EffectRows(model.cells(X), y[:, None], np.zeros((40, 1)), np.ones(40))
    assert measure_effects(model, rows).evidence is None


# --- pictures and the page


def test_pictures_tell_the_band_of_the_effect_from_the_bounds(fitted: NAERegressor) -> None:
    mpl.use("Agg")
    found = fitted.explain_global(coverage=0.8)
    for name in ("curve", "level"):
        ax = plots.shape(found, name)
        assert "effect, 80 % sure" in [text.get_text() for text in ax.get_legend().get_texts()]
        drawn = plots.shape(found, name, backend="plotly")
        assert sum(trace.name == "effect, 80 % sure" for trace in drawn.data) == (2 if name == "curve" else 1)
    assert "cannot be told from noise" in " ".join(text.get_text() for text in plots.importance(found).texts)
    assert any("noise" in text for text in plots.importance(found, backend="plotly").data[1].text)
    plt.close("all")


def test_pictures_without_evidence_have_no_such_band(fitted: NAERegressor) -> None:
    found = replace(fitted.model_, evidence=None).explain_global()
    ax = plots.shape(found, "curve")
    assert not any("sure" in text.get_text() for text in ax.get_legend().get_texts())
    assert not any("sure" in (trace.name or "") for trace in plots.shape(found, "curve", backend="plotly").data)
    plt.close("all")


@pytest.mark.slow
@pytest.mark.skipif("NAE_DATA" not in os.environ, reason="NAE_DATA does not name the folder with the tables")
def test_the_example_of_the_page_says_what_the_page_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "decisions_with_models.md").read_text()
    block = re.findall(r"^```python\n(.*?)^```", page.partition("## What is real")[2], re.DOTALL | re.MULTILINE)[0]
    names: dict[str, Any] = {"pd": pd, "np": np, "NAEClassifier": NAEClassifier, "folder": os.environ["NAE_DATA"]}
    exec(compile(block, "page", "exec"), names)  # noqa: S102
    verdicts = {shape.name: shape.is_noise for shape in names["found"].features}
    assert verdicts["coin"]
    assert not any(verdicts[name] for name in ("scoma", "age", "num.co"))
    assert np.nanmax(names["scoma"].effect_upper) > 1.9


def test_classes_that_a_feature_separates_have_finite_effects() -> None:
    X = rows_of(0, 200, lambda x: 3 * x)[0]
    model = with_statistics(idle_model(loss="logistic"), X)
    truth = (X["curve"] > 0.5).astype(float)[:, None]
    found = measure_effects(model, EffectRows(model.cells(X), truth, np.zeros((200, 1)), np.ones(200))).evidence
    assert found.chance[0, 0] < 1e-6
    assert 2 < np.abs(found.centre[:41, 0]).max() < 15


@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma"])
def test_a_fit_that_starts_far_from_the_truth_gets_there(loss: str) -> None:
    random = np.random.default_rng(1)
    X, _, truth = rows_of(0, 600, lambda x: 3 * x)
    draws = {
        "logistic": (random.uniform(size=600) < 1 / (1 + np.exp(-truth))).astype(float),
        "poisson": random.poisson(np.exp(truth + 2)).astype(float),
        "gamma": random.gamma(2.0, np.exp(truth + 3)),
    }
    model = with_statistics(idle_model(loss=loss), X)
    rows = EffectRows(model.cells(X), draws[loss][:, None], np.zeros((600, 1)), np.ones(600))
    found = measure_effects(model, rows).evidence
    centre, error = (np.interp(X["curve"], FEATURES[0].knots, one[:41, 0]) for one in (found.centre, found.error))
    assert np.mean(np.abs(truth - centre) <= 1.645 * error) > 0.7
    assert found.chance[0, 0] < 1e-6
    assert found.chance[1:, 0].min() > 0.01


# --- the benchmark


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_drawn_effects_average_zero_and_idle_ones_are_zero(case: Any) -> None:
    drawn = draw(case, 0)
    assert len(drawn.y) == case.n_rows
    assert all(abs(effect.mean()) < 1e-9 for effect in drawn.effects.values())
    assert drawn.idle >= {"idle 0", "idle 1", "idle level"}


def test_a_case_is_measured_and_rendered() -> None:
    found = measure(CASES[0], 0, n_members=2, max_epochs=10)
    assert 0.6 <= found.covered[1] <= 1
    assert found.covered == sorted(found.covered)
    page = render([found], {"300 rows": chances(CASES[0], 0)})
    assert "| 300 rows | 1 |" in page
    assert "| 300 rows | 3 |" in page
    assert "| all | 3 |" in page


@pytest.mark.slow
def test_bands_of_fits_hold_the_truth() -> None:
    trials = [measure(CASES[0], seed) for seed in range(6)]
    assert 0.85 <= np.mean([one.covered[1] for one in trials]) <= 0.96
    assert np.mean([one.members for one in trials]) < 0.7
