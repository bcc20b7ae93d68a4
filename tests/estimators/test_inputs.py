"""Estimators on tables as they come: every container, every odd column."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from nae import NAEClassifier, NAERegressor, metrics
from nae.errors import DataError

FAST = {"n_members": 1, "n_experts": 2, "hidden_dim": 8, "max_epochs": 5, "random_state": 0}
N_ROWS = 40


def fit(X: object, y: object = None, **params: object) -> NAERegressor:
    y = np.arange(N_ROWS) % 7 if y is None else y
    return NAERegressor(**FAST | params).fit(X, y)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": np.round(random.normal(size=N_ROWS), 3),
            "count": pd.Series(random.integers(0, 9, N_ROWS)).where(random.uniform(size=N_ROWS) > 0.2).astype("Int64"),
            "flag": pd.Series(random.uniform(size=N_ROWS) > 0.5).astype("boolean").where(np.arange(N_ROWS) % 9 > 0),
            "level": pd.Series(random.choice(["a", "b", None], N_ROWS)),
        }
    )


def containers(frame: pd.DataFrame) -> dict[str, object]:
    polars = pl.from_pandas(frame)
    records = polars.to_dicts()
    return {
        "pandas": frame,
        "arrow-backed pandas": frame.convert_dtypes(dtype_backend="pyarrow"),
        "object pandas": frame.astype(object),
        "categorical pandas": frame.assign(level=frame["level"].astype("category")),
        "polars": polars,
        "polars categorical": polars.with_columns(pl.col("level").cast(pl.Categorical)),
        "polars enum": polars.with_columns(pl.col("level").cast(pl.Enum(["b", "a"]))),
        "polars lazy": polars.lazy(),
        "pyarrow": polars.to_arrow(),
        "mapping": polars.to_dict(as_series=False),
        "records": records,
        "lists": [list(record.values()) for record in records],
        "object array": np.array([list(record.values()) for record in records], dtype=object),
    }


CONTAINERS = [
    *("pandas", "arrow-backed pandas", "object pandas", "categorical pandas", "polars", "polars categorical"),
    *("polars enum", "polars lazy", "pyarrow", "mapping", "records", "lists", "object array"),
]


@pytest.fixture(scope="module")
def fitted(frame) -> NAERegressor:
    """One fit for all tests that only ask; they must not change it."""
    return fit(frame)


@pytest.fixture(scope="module")
def tables(frame) -> dict[str, object]:
    return containers(frame)


@pytest.fixture(scope="module")
def reference(frame, fitted) -> np.ndarray:
    return fitted.predict(frame)


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_container_of_a_table_does_not_matter(frame, tables, reference, name):
    table = tables[name]
    model = fit(table)
    np.testing.assert_array_equal(model.predict(table), reference)
    kinds = [feature.kind for feature in model.model_.schema.features]
    assert kinds == ["number", "number", "boolean", "category"]
    has_names = name not in ("lists", "object array")
    assert hasattr(model, "feature_names_in_") == has_names
    assert model.model_.feature_names == (tuple(frame.columns) if has_names else ("x0", "x1", "x2", "x3"))
    assert model.n_features_in_ == 4


@pytest.mark.parametrize("name", [name for name in CONTAINERS if name not in ("lists", "object array")])
def test_a_model_predicts_from_another_container_than_it_was_fitted_on(fitted, tables, reference, name):
    np.testing.assert_array_equal(fitted.predict(tables[name]), reference)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_arrays_of_any_numeric_type_are_fitted(dtype):
    X = np.random.default_rng(1).integers(0, 2 if dtype is bool else 9, (N_ROWS, 3)).astype(dtype)
    model = fit(X)
    np.testing.assert_array_equal(model.predict(X), fit(X.tolist()).predict(X.tolist()))
    assert {feature.kind for feature in model.model_.schema.features} == {"boolean" if dtype is bool else "number"}


def test_arrays_of_text_are_categories():
    X = np.random.default_rng(2).choice(["a", "b"], (N_ROWS, 2))
    assert {feature.kind for feature in fit(X).model_.schema.features} == {"category"}


def test_kinds_may_be_given(frame):
    model = fit(frame, feature_types={"count": "category"})
    assert model.model_.schema.features[1].kind == "category"
    assert model.model_.schema.features[1].reason == "given by feature_types"


@pytest.mark.parametrize("rows", [[5], [5, 17]])
def test_an_infinite_number_is_an_error_that_names_column_and_row(frame, rows):
    odd = frame.copy()
    odd.loc[rows, "number"] = np.inf
    with pytest.raises(DataError, match=r"Column 'number' must hold finite numbers; row 5 holds inf. Mark it missing"):
        fit(odd)


def test_an_infinite_number_is_found_wherever_validation_rows_are():
    X = np.random.default_rng(3).normal(size=(400, 2))
    X[123, 1] = -np.inf
    for seed in range(3):
        with pytest.raises(DataError, match="Column 'x1' must hold finite numbers; row 123 holds -inf"):
            NAERegressor(**FAST | {"random_state": seed}).fit(X, np.zeros(400))


def test_rows_are_counted_in_the_whole_table_when_some_have_no_weight(frame):
    odd = frame.copy()
    odd.loc[20, "number"] = np.inf
    weight = np.ones(N_ROWS)
    weight[:10] = 0
    with pytest.raises(DataError, match="row 20 holds inf"):
        NAERegressor(**FAST).fit(odd, np.zeros(N_ROWS), sample_weight=weight)


def test_infinity_predicts_like_the_end_of_the_range():
    X = np.linspace(-1, 1, N_ROWS)[:, None]
    model = fit(X, X[:, 0])
    ends = model.predict([[-1.0], [1.0]])
    np.testing.assert_array_equal(model.predict([[-np.inf], [np.inf]]), ends)
    np.testing.assert_array_equal(model.predict([[-99.0], [99.0]]), ends)


def test_negative_zero_predicts_like_zero():
    X = np.resize([-1.0, -0.0, 1.0], N_ROWS)[:, None]
    model = fit(X)
    assert model.model_.schema.features[0].labels[:3] == ("-1", "0", "1")
    np.testing.assert_array_equal(model.predict([[-0.0]]), model.predict([[0.0]]))


def test_huge_integers_are_numbers_until_no_float_holds_them():
    X = [[2**63 + i * 2**60] for i in range(N_ROWS)]
    assert np.isfinite(fit(X).predict(X)).all()
    X[3] = [10**400]
    with pytest.raises(DataError, match="Column 'x0' must hold numbers; row 3 holds a whole number of 1329 bits"):
        fit(X)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_numbers_of_any_size_are_fitted(scale):
    X = np.random.default_rng(4).normal(size=(N_ROWS, 1)) * scale
    model = fit(X, X[:, 0] / scale, max_epochs=50)
    assert model.score(X, X[:, 0] / scale) > 0.5


def test_constant_and_empty_columns_are_fitted_and_their_value_does_not_matter(frame):
    X = frame.assign(constant=3.0, empty=np.nan, one_level="x", nothing=None)
    model = fit(X)
    other = X.assign(constant=99.0, empty=5.0, one_level="y", nothing=1.0)
    for name in ("constant", "empty", "one_level", "nothing"):
        assert not model.contributions(X).feature(name).any()
        assert not model.contributions(other).feature(name).any()
        assert metrics.additivity(model, X).per_feature[name] == pytest.approx(1)
    np.testing.assert_allclose(model.predict(other), model.predict(X), atol=1e-9)


def test_a_table_of_nothing_but_constants_predicts_the_mean():
    X, y = np.ones((N_ROWS, 2)), np.arange(N_ROWS) % 5
    np.testing.assert_allclose(fit(X, y, max_epochs=100).predict(X), y.mean(), atol=0.05)


def test_one_row_is_fitted():
    model = NAERegressor(**FAST | {"max_epochs": 200}).fit([[1.0, "a"]], [3.0])
    np.testing.assert_allclose(model.predict([[1.0, "a"]]), [3.0], atol=0.01)
    assert np.isfinite(model.predict([[2.0, "b"]])).all()


def test_a_constant_target_is_predicted():
    X = np.random.default_rng(5).normal(size=(N_ROWS, 2))
    np.testing.assert_allclose(fit(X, np.full(N_ROWS, 1e6)).predict(X), 1e6, rtol=1e-3)


def test_no_rows_to_fit_are_an_error():
    with pytest.raises(DataError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 2\)\)"):
        NAERegressor().fit(np.empty((0, 2)), [])


def test_no_columns_to_fit_are_an_error():
    with pytest.raises(DataError, match=r"Found array with 0 feature\(s\) \(shape=\(\d, 0\)\)"):
        NAERegressor().fit(np.empty((3, 0)), [1, 2, 3])


def test_no_rows_to_predict_give_no_predictions(frame, fitted):
    none = frame.iloc[:0]
    assert fitted.predict(none).shape == (0,)
    assert fitted.contributions(none).values.shape == (0, 4)
    classifier = NAEClassifier(**FAST).fit(frame, np.arange(N_ROWS) % 3)
    assert classifier.predict_proba(none).shape == (0, 3)


def test_names_that_stand_twice_are_an_error(frame):
    twice = frame[["number", "number"]]
    with pytest.raises(DataError, match="Column names must differ; 'number' stands for 2 columns"):
        fit(twice)


def test_names_of_mixed_types_are_an_error(frame):
    with pytest.raises(DataError, match="Column names must all be text or none of them"):
        fit(frame.rename(columns={"number": 1}))


def test_a_column_of_dates_is_an_error_with_a_hint(frame):
    dated = frame.assign(when=pd.Timestamp("2020-01-01"))
    with pytest.raises(DataError, match=r"Column 'when' must hold numbers.*Turn it into numbers, such as days"):
        fit(dated)


def test_unused_levels_of_a_category_are_not_learned():
    level = pd.Categorical(["a", "b"] * (N_ROWS // 2), categories=["a", "b", "c"])
    assert set(fit(pd.DataFrame({"level": level})).model_.schema.features[0].levels) == {"a", "b"}


def test_columns_in_another_order_are_an_error_for_estimators_and_matched_by_their_tables(frame, fitted):
    other = frame[["level", "number", "flag", "count"]]
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        fitted.predict(other)
    np.testing.assert_array_equal(fitted.model_.predict(other), fitted.predict(frame))


def test_missing_and_extra_columns_are_errors_for_estimators(frame, fitted):
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        fitted.predict(frame.drop(columns="flag"))
    for more in (1, pd.Timestamp("2020-01-01")):  # what it holds does not matter
        with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- more"):
            fitted.predict(frame.assign(more=more))


def test_missing_columns_are_errors_for_tables_and_extra_ones_are_not(frame, fitted):
    with pytest.raises(DataError, match="The table must have the column 'flag' the model was trained on"):
        fitted.model_.predict(frame.drop(columns="flag"))
    for more in (1, pd.Timestamp("2020-01-01")):
        np.testing.assert_array_equal(fitted.model_.predict(frame.assign(more=more)), fitted.predict(frame))
    with pytest.raises(DataError, match=r"the column 'flag' the model was trained on. Did you mean 'flags'"):
        fitted.model_.predict(frame.rename(columns={"flag": "flags"}))


def test_the_number_of_columns_of_an_array_must_fit():
    model = fit(np.zeros((N_ROWS, 2)))
    with pytest.raises(ValueError, match="X has 3 features, but NAERegressor is expecting 2 features"):
        model.predict(np.zeros((2, 3)))


def test_names_are_missed_when_a_model_has_them(frame, fitted):
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        fitted.predict([list(row) for row in pl.from_pandas(frame).rows()])


def test_a_target_of_another_length_is_an_error(frame):
    with pytest.raises(DataError, match=r"inconsistent numbers of samples \[40, 39\]"):
        fit(frame, np.zeros(39))


def test_no_target_is_an_error(frame):
    with pytest.raises(DataError, match="requires y to be passed, but the target y is None"):
        NAERegressor().fit(frame, None)


def test_the_name_of_a_column_is_no_target_of_a_table_in_memory():
    with pytest.raises(DataError, match=r"y must hold one target per row; got the text 'price'\. Only nae.scan"):
        NAERegressor().fit({"size": [1.0, 2.0], "price": [3.0, 4.0]}, "price")


def test_a_column_of_nothing_but_missing_values_may_hold_anything_later():
    table = pd.DataFrame({"x": np.arange(40.0), "pool": pd.Series([None] * 40, dtype="str")})
    model = fit(table)
    later = table.assign(pool=["good", None] * 20)
    np.testing.assert_array_equal(model.predict(later), model.predict(table))
    assert not model.contributions(later).feature("pool").any()


def test_a_pipeline_with_the_default_one_hot_encoder_fits() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"town": random.choice([f"t{i}" for i in range(12)], N_ROWS), "size": random.normal(size=N_ROWS)}
    )
    encode = ColumnTransformer([("town", OneHotEncoder(), ["town"])], remainder="passthrough")
    assert scipy.sparse.issparse(encode.fit_transform(table))
    target = np.arange(N_ROWS) % 7
    model = make_pipeline(encode, NAERegressor(**FAST)).fit(table, target)
    dense = NAERegressor(**FAST).fit(encode.transform(table).toarray(), target)
    np.testing.assert_array_equal(model.predict(table), dense.predict(encode.transform(table).toarray()))
