import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from nae import ContributionTransformer, NAEClassifier, NAERegressor
from nae.errors import ConfigError
from tests.plots.explained import NAMES, model_of, rows_of


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": random.uniform(-1, 1, 200), "b": random.uniform(-1, 1, 200), "noise": random.uniform(size=200)}
    )


@pytest.fixture(scope="module")
def target(rows: pd.DataFrame) -> pd.Series:
    return np.sin(3 * rows["a"]) + rows["b"] ** 2


@pytest.fixture(scope="module")
def additive(rows: pd.DataFrame, target: pd.Series) -> NAERegressor:
    return NAERegressor(additivity=1.0, n_members=1, max_epochs=60, random_state=0).fit(rows, target)


def test_contributions_become_columns(rows: pd.DataFrame, additive: NAERegressor) -> None:
    transformer = ContributionTransformer(additive, is_fitted=True).fit(rows)
    np.testing.assert_array_equal(transformer.transform(rows), additive.contributions(rows).values)
    assert transformer.get_feature_names_out().tolist() == [
        "contribution of a",
        "contribution of b",
        "contribution of noise",
    ]


def test_the_output_is_a_frame_on_request(rows: pd.DataFrame, additive: NAERegressor) -> None:
    transformer = ContributionTransformer(additive.model_)
    as_pandas = clone(transformer).set_output(transform="pandas").fit_transform(rows)
    assert isinstance(as_pandas, pd.DataFrame)
    assert as_pandas.columns[0] == "contribution of a"
    assert as_pandas.index.equals(rows.index)
    as_polars = clone(transformer).set_output(transform="polars").fit_transform(pl.from_pandas(rows))
    assert isinstance(as_polars, pl.DataFrame)
    np.testing.assert_allclose(as_polars.to_numpy(), as_pandas.to_numpy())


def test_an_unfitted_estimator_is_fitted_inside_a_pipeline(rows: pd.DataFrame, target: pd.Series) -> None:
    estimator = NAERegressor(n_members=1, max_epochs=5, random_state=0)
    pipeline = make_pipeline(ContributionTransformer(estimator), LinearRegression()).fit(rows, target)
    assert not hasattr(estimator, "model_")  # a clone was
    assert pipeline.predict(rows).shape == (200,)


def test_classes_have_columns_of_their_own() -> None:
    transformer = ContributionTransformer(model_of(3)).fit(rows_of())
    assert transformer.transform(rows_of()).shape == (400, 15)
    names = transformer.get_feature_names_out()
    assert names[:2].tolist() == [f"contribution of {NAMES[0]} to class 0", f"contribution of {NAMES[0]} to class 1"]


def test_what_is_wrong_with_a_call_is_said(rows: pd.DataFrame, additive: NAERegressor) -> None:
    with pytest.raises(ConfigError, match="ContributionTransformer needs a model"):
        ContributionTransformer().fit(rows)
    with pytest.raises(NotFittedError):
        ContributionTransformer(additive).transform(rows)


def test_permutation_importance_finds_the_noise(rows: pd.DataFrame, target: pd.Series, additive: NAERegressor) -> None:
    found = permutation_importance(additive, rows, target, n_repeats=2, random_state=0)
    assert found.importances_mean.argmin() == 2
    assert found.importances_mean[0] > 10 * abs(found.importances_mean[2])


def test_importances_are_shares_that_select_features(
    rows: pd.DataFrame, target: pd.Series, additive: NAERegressor
) -> None:
    importance = [shape.importance[0] for shape in additive.explain_global().features]
    np.testing.assert_allclose(additive.feature_importances_, importance / np.sum(importance))
    kept = SelectFromModel(additive, prefit=True, threshold=0.1).get_support()
    assert kept.tolist() == [True, True, False]
    with pytest.raises(NotFittedError):
        _ = NAERegressor().feature_importances_


def test_partial_dependence_of_an_additive_model_is_its_mean_effect(rows: pd.DataFrame, additive: NAERegressor) -> None:
    shape = additive.explain_global().feature("a")
    knots = shape.numbers[:-2][5::20]
    found = partial_dependence(additive, rows, ["a"], custom_values={"a": knots}, method="brute")
    effect = shape.mean[:-2, 0][5::20]
    # Both are centred by different rows' means: equal up to one constant.
    gap = found["average"][0] - effect
    np.testing.assert_allclose(gap, gap[0], atol=1e-6)
    assert np.ptp(effect) > 0.5


def test_partial_dependence_is_displayed_for_numbers_and_categories(rows: pd.DataFrame) -> None:
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    mixed = rows.assign(side=np.where(rows["a"] > 0, "left", "right")).drop(columns="noise")
    model = NAEClassifier(n_members=1, max_epochs=5, random_state=0).fit(mixed, rows["b"] > 0)
    display = PartialDependenceDisplay.from_estimator(
        model, mixed, ["a", "side"], categorical_features=["side"], grid_resolution=5
    )
    assert len(display.axes_.ravel()) == 2
    plt.close("all")
