"""The contract of scikit-learn: its own checks, with no expected failures, and its tools."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nae import NAEClassifier, NAERegressor

FAST = {"n_members": 1, "n_experts": 3, "hidden_dim": 8, "max_epochs": 30, "random_state": 0}
ESTIMATORS = [NAERegressor, NAEClassifier]


@parametrize_with_checks(
    [
        NAERegressor(n_members=1, max_epochs=30),
        NAEClassifier(n_members=1, max_epochs=30),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([NAERegressor(), NAEClassifier()])
def test_scikit_learns_checks_pass_with_the_defaults(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        NAERegressor("quantile", n_members=1, max_epochs=30),
        NAERegressor(variant="nae-e", n_members=1, max_epochs=30),
        NAERegressor(variant="nae-d", n_members=1, max_epochs=30),
        NAERegressor(additivity=0.9, n_members=1, max_epochs=30),
        NAEClassifier(gate="deep", n_members=1, max_epochs=30),
    ]
)
def test_scikit_learns_checks_pass_for_other_models(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({"a": random.normal(size=90), "b": random.normal(size=90), "c": random.choice(["x", "y"], 90)})


@pytest.fixture(scope="module")
def numbers(table) -> np.ndarray:
    return (table["a"] * np.where(table["c"] == "x", 1, -1) + 0.1 * table["b"]).to_numpy()


@pytest.fixture(scope="module")
def labels(numbers) -> np.ndarray:
    return np.where(numbers > 0, "yes", "no")


def test_estimators_are_what_they_say():
    assert is_regressor(NAERegressor())
    assert is_classifier(NAEClassifier())
    assert not hasattr(NAERegressor(), "decision_function")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_all_parameters_are_keywords_with_defaults_and_nothing_else_is_stored(estimator):
    parameters = inspect.signature(estimator.__init__).parameters
    model = estimator()
    names = [name for name in parameters if name != "self"]
    assert vars(model).keys() == set(names)
    assert sorted(model.get_params()) == sorted(names)
    assert all(getattr(model, name) == parameters[name].default for name in names)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_arguments_are_stored_as_they_are_and_shown_where_they_differ_from_the_defaults(estimator):
    given = {name: object() for name in estimator().get_params()}
    assert estimator(**given).get_params(deep=False) == given
    assert repr(estimator(n_experts=3, device="cpu")) == f"{estimator.__name__}(device='cpu', n_experts=3)"


def test_a_subclass_may_have_parameters_of_its_own():
    class Halved(NAERegressor):
        def __init__(self, *, factor=0.5, n_experts=3):
            super().__init__(n_experts=n_experts)
            self.factor = factor

    model = clone(Halved(factor=0.25))
    assert model.get_params() == {"factor": 0.25, "n_experts": 3}
    assert (model.loss, model.n_blocks) == ("squared", 2)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_documented(estimator):
    documented = inspect.getdoc(estimator).partition("Parameters\n")[2].partition("Attributes\n")[0]
    heads = [line.partition(" : ")[0] for line in documented.splitlines() if " : " in line and line[0] != " "]
    assert sorted(name for head in heads for name in head.split(", ")) == sorted(estimator().get_params())


def test_parameters_are_set_and_read():
    model = NAERegressor().set_params(n_experts=5, loss="huber")
    assert (model.n_experts, model.get_params()["loss"]) == (5, "huber")
    with pytest.raises(ValueError, match="Invalid parameter 'n_expert' for estimator"):
        model.set_params(n_expert=5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_clone_has_the_parameters_and_nothing_of_the_fit(estimator, table, numbers, labels):
    model = estimator(**FAST, callbacks=[], feature_types={"a": "number"})
    model.fit(table, labels if is_classifier(model) else numbers)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "model_")
    with pytest.raises(NotFittedError):
        copy.predict(table)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_pickled_estimator_predicts_alike(estimator, table, numbers, labels):
    model = estimator(**FAST)
    model.fit(table, labels if is_classifier(model) else numbers)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


def test_cross_validation(table, numbers, labels):
    longer = FAST | {"max_epochs": 100, "n_members": 4}
    scores = cross_val_score(NAERegressor(**longer), table, numbers, cv=3)
    assert scores.min() > 0.5
    accuracies = cross_val_score(NAEClassifier(**longer), table, labels, cv=3, scoring="roc_auc")
    assert accuracies.min() > 0.8
    proba = cross_val_predict(NAEClassifier(**FAST), table, labels, cv=3, method="predict_proba")
    assert proba.shape == (90, 2)


def test_grid_search(table, labels):
    model = NAEClassifier(**FAST | {"max_epochs": 100})
    search = GridSearchCV(model, {"learning_rate": [1e-6, 1e-2], "n_experts": [4]}, cv=3, scoring="roc_auc")
    search.fit(table, labels)
    assert search.best_params_ == {"learning_rate": 1e-2, "n_experts": 4}
    assert search.predict(table).shape == (90,)
    assert search.best_estimator_.feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_pipeline(table, numbers):
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b"]), ("passthrough", ["c"]), verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = Pipeline([("columns", columns), ("model", NAERegressor(**FAST))])
    model.fit(table, numbers)
    assert model.predict(table).shape == (90,)
    assert model[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    search = GridSearchCV(model, {"model__n_experts": [1, 2]}, cv=2).fit(table, numbers)
    assert set(search.best_params_) == {"model__n_experts"}


def test_a_pipeline_of_arrays(table, numbers):
    X = table[["a", "b"]].to_numpy()
    model = make_pipeline(StandardScaler(), FunctionTransformer(), NAERegressor(**FAST)).fit(X, X[:, 0])
    assert model.score(X, X[:, 0]) > 0.9


def test_tools_that_wrap_an_estimator(table, numbers):
    several = MultiOutputRegressor(NAERegressor(**FAST)).fit(table[["a", "b"]], np.stack([numbers, -numbers], axis=1))
    assert several.predict(table[["a", "b"]]).shape == (90, 2)
    model = NAERegressor(**FAST | {"max_epochs": 100}).fit(table, numbers)
    importance = permutation_importance(model, table, numbers, n_repeats=2, random_state=0)
    assert importance.importances_mean.argmin() == 1


def test_weights_offset_and_evaluation_set_are_routed(table, numbers, labels):
    random = np.random.default_rng(1)
    weight, offset = random.uniform(0.5, 2, 90), random.normal(size=90)
    eval_set = (table.iloc[:10], numbers[:10], None, offset[:10])
    asked = []

    class Recording(NAERegressor):
        def fit(self, X, y, *, sample_weight=None, eval_set=None, offset=None):
            asked.append((sample_weight, eval_set, offset))
            return super().fit(X, y, sample_weight=sample_weight, eval_set=eval_set, offset=offset)

    with sklearn.config_context(enable_metadata_routing=True):
        model = Recording(**FAST).set_fit_request(sample_weight=True, eval_set=True, offset=True)
        model = model.set_score_request(sample_weight=True, offset=True)
        found = cross_validate(
            make_pipeline(FunctionTransformer(), model),
            table,
            numbers,
            cv=3,
            params={"sample_weight": weight, "eval_set": eval_set, "offset": offset},
            error_score="raise",
        )
    assert len(asked) == len(found["test_score"]) == 3
    for given_weight, given_set, given_offset in asked:
        assert len(given_weight) == len(given_offset) == 60
        assert given_set is eval_set


def test_groups_are_routed_to_the_splitter_and_weights_to_the_fit(table, labels):
    with sklearn.config_context(enable_metadata_routing=True):
        model = NAEClassifier(**FAST).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"n_experts": [1, 2]}, cv=GroupKFold(3).set_split_request(groups=True))
        search.fit(table, labels, sample_weight=np.ones(90), groups=np.arange(90) % 5)
    assert search.best_params_["n_experts"] in (1, 2)


def test_metadata_that_was_not_asked_for_is_an_error(table, numbers):
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(NAERegressor(**FAST))
        with pytest.raises(ValueError, match="sample_weight"):
            model.fit(table, numbers, sample_weight=np.ones(90))


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function", "contributions"]
)
def test_predicting_before_fitting_is_an_error(method, table):
    with pytest.raises(NotFittedError, match="This NAEClassifier instance is not fitted yet"):
        getattr(NAEClassifier(), method)(table)


@pytest.mark.parametrize("method", ["predict", "contributions"])
def test_predicting_numbers_before_fitting_is_an_error(method, table):
    with pytest.raises(NotFittedError, match="This NAERegressor instance is not fitted yet"):
        getattr(NAERegressor(), method)(table)


def test_the_intercept_needs_a_fit(numbers, table):
    with pytest.raises(NotFittedError):
        _ = NAERegressor().intercept_
    assert isinstance(NAERegressor(**FAST).fit(table, numbers).intercept_, float)
