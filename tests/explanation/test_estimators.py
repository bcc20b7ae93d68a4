import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from nae import NAEClassifier, NAERegressor


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    random = np.random.default_rng(0)
    size = random.uniform(-1, 1, 120)
    return pd.DataFrame({"size": size, "side": random.choice(["left", "right"], 120)})


@pytest.fixture(scope="module")
def classifier(rows: pd.DataFrame) -> NAEClassifier:
    target = np.where((rows["size"] > 0) == (rows["side"] == "left"), "yes", "no")
    return NAEClassifier(n_members=2, max_epochs=30, random_state=0).fit(rows, target)


def test_an_estimator_and_its_tables_give_the_same_explanations(classifier: NAEClassifier, rows: pd.DataFrame) -> None:
    model = classifier.model_
    assert classifier.explain_global(rows).to_json() == model.explain_global(rows).to_json()
    assert classifier.explain_local(rows).to_json() == model.explain_local(rows).to_json()
    one, two = (m.explain_interaction("size", "side").to_json() for m in (classifier, model))
    assert one == two
    assert classifier.interaction_strength().to_json() == model.interaction_strength().to_json()
    assert classifier.top_interactions(1) == model.top_interactions(1)
    assert classifier.effect_caps_.caps == model.effect_caps_.caps


def test_a_binary_classifier_speaks_of_log_odds(classifier: NAEClassifier, rows: pd.DataFrame) -> None:
    found = classifier.explain_local(rows, np.full(120, "yes"))
    assert found.outputs == ("yes",)
    assert found.classes == ("no", "yes")
    np.testing.assert_allclose(found.prediction[:, 0], classifier.predict_proba(rows)[:, 1])
    assert "raises the log-odds of yes" in classifier.effect_caps_["size"].sentence
    assert classifier.top_interactions(1)[0].strength > 0


def test_an_estimator_asks_for_its_columns_in_order(classifier: NAEClassifier, rows: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.explain_local(rows[["side", "size"]])
    moved = classifier.model_.explain_local(rows[["side", "size"]])  # the tables match by name
    np.testing.assert_array_equal(moved.values, classifier.explain_local(rows).values)


def test_an_estimator_must_be_fitted_first(rows: pd.DataFrame) -> None:
    with pytest.raises(NotFittedError):
        NAERegressor().explain_global()
    with pytest.raises(NotFittedError):
        NAERegressor().explain_local(rows)
    assert not hasattr(NAERegressor(), "effect_caps_")


def test_several_targets_have_effects_of_their_own(rows: pd.DataFrame) -> None:
    size = rows["size"].to_numpy()
    targets = pd.DataFrame({"up": size, "down": -size})
    model = NAERegressor(n_members=1, max_epochs=30, random_state=0).fit(rows, targets)
    shape = model.explain_global().feature("size")
    values = shape.mean[:-2]
    assert model.explain_global().outputs == ("up", "down")
    assert values[-1, 0] > values[0, 0]
    assert values[-1, 1] < values[0, 1]
