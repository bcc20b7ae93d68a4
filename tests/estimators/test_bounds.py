"""The parameter ``bounds``: what contributions may be, and that training and its rows do not notice."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nae
from nae import NAEClassifier, NAERegressor, datasets, metrics, presets
from nae.tables import TableModel

QUICK: dict[str, Any] = {"n_members": 2, "max_epochs": 15, "random_state": 0}
X, Y = datasets.multimodal(600)


@pytest.fixture(scope="module")
def model() -> TableModel:
    return NAERegressor(**QUICK).fit(X, Y).model_


def rounding(model: TableModel) -> float:
    return float(64 * np.finfo(np.float32).eps * np.abs(model.experts).max())


def test_bounds_of_the_experts_are_those_of_the_same_model_without_clamps(model):
    free = NAERegressor(bounds="experts", **QUICK).fit(X, Y).model_
    assert free.clamps is None
    np.testing.assert_array_equal(free.experts, model.experts)
    np.testing.assert_allclose(free.intercept, model.intercept, atol=rounding(model))
    np.testing.assert_allclose(free.predict(X), model.predict(X), atol=rounding(model))


def test_bounds_are_tighter_and_contributions_still_centred(model):
    free = replace(model, clamps=None)
    assert float(metrics.tightness(model, X)) > 1.1 * float(metrics.tightness(free, X))
    np.testing.assert_allclose(model.contributions(X).values.mean(axis=0), 0.0, atol=1e-5)


def test_a_file_keeps_the_clamps(model, tmp_path):
    model.save(tmp_path / "m.nae")
    again = nae.load(tmp_path / "m.nae")
    np.testing.assert_array_equal(again.clamps.lower, model.clamps.lower)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_an_additive_model_needs_no_clamps():
    found = NAERegressor(additivity=1.0, **QUICK).fit(X, Y).model_
    assert found.clamps is None
    kept = found.contributions(X)
    np.testing.assert_allclose(kept.lower, kept.upper, atol=1e-12)


def test_paper_mode_has_the_papers_bounds():
    assert presets.paper("housing")["bounds"] == "experts"


def test_files_are_fitted_with_clamps_of_a_sample_of_their_rows(tmp_path):
    pd.DataFrame({**X, "y": Y}).to_csv(tmp_path / "t.csv", index=False)
    scan = nae.scan(tmp_path / "t.csv", block_rows=250)
    found = NAERegressor(**QUICK).fit(scan, "y").model_
    free = replace(found, clamps=None)
    assert found.clamps is not None
    moved = np.abs(found.contributions(X).values - free.contributions(X).values) > rounding(found)
    assert moved.mean() < 0.02


@pytest.mark.parametrize(
    ("given", "promise"),
    [
        ({"monotonic_cst": {"x1": 1}}, {"monotone": {"x1": "+"}}),
        ({"monotonic_cst": {"x1": -1, "x2": 1}}, {"monotone": {"x1": "-", "x2": "+"}}),
        ({"convex": ["x1"]}, {"curved": {"x1": "convex"}}),
        ({"max_effect": {"x1": 0.3}}, {"max_effect": {"x1": 0.3}}),
    ],
    ids=["rising", "both ways", "convex", "capped"],
)
def test_promises_are_proven_with_clamps(given, promise):
    found = NAERegressor(**QUICK, **given).fit(X, Y).model_
    assert found.clamps is not None
    assert [one.verdict for one in found.certify(**promise).certificates] == ["proven"] * len(
        next(iter(promise.values()))
    )


def test_quantiles_stay_in_order_with_clamps():
    found = NAERegressor("quantile", quantile=[0.1, 0.5, 0.9], **QUICK).fit(X, Y).model_
    assert found.clamps is not None
    assert {one.verdict for one in found.certify(ordered=True).certificates} == {"proven"}
    rows = dict(zip(X, np.random.default_rng(0).uniform(-3, 3, (len(X), 2000)), strict=True))
    assert np.diff(found.decision_function(rows), axis=1).min() >= 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_have_clamps(n_classes):
    codes = np.digitize(np.asarray(Y), np.quantile(Y, np.arange(1, n_classes) / n_classes))
    found = NAEClassifier(**QUICK).fit(X, codes).model_
    free = replace(found, clamps=None)
    assert found.clamps is not None
    np.testing.assert_allclose(found.predict_proba(X), free.predict_proba(X), atol=1e-5)
