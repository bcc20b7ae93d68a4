"""Groups of rows have the quality of their rows alone, with the rates that their definitions give."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, roc_auc_score

from nae import NAEClassifier, NAERegressor, quality
from nae.errors import ConfigError, DataError, UserError
from nae.quality import Groups
from nae.quality.grouping import group_rows

FAST = {"n_members": 1, "max_epochs": 6, "random_state": 0}


def people(n_rows: int = 900) -> tuple[pd.DataFrame, Any]:
    """Return people of two sexes, and a number that depends on age more than on sex."""
    random = np.random.default_rng(0)
    sex = np.where(random.uniform(size=n_rows) < 0.4, "f", "m")
    X = pd.DataFrame({"age": random.uniform(20, 60, n_rows), "hours": random.uniform(size=n_rows), "sex": sex})
    X.loc[::50, "sex"] = None
    score = (X["age"] - 40) / 10 + (sex == "m") * 0.8 + random.normal(size=n_rows)
    return X, score.to_numpy()


@pytest.fixture(scope="module")
def classifier() -> NAEClassifier:
    """Return a model of two classes that does not know the sex."""
    X, score = people()
    return NAEClassifier(**FAST).fit(X[["age", "hours"]], np.where(score > 0.8, "yes", "no"))


@pytest.fixture(scope="module")
def groups(classifier: NAEClassifier) -> Groups:
    """Return the quality by sex."""
    X, score = people()
    return quality.by_group(classifier, X, np.where(score > 0.8, "yes", "no"), by="sex")


def test_rates_are_those_of_their_definition(classifier: NAEClassifier, groups: Groups) -> None:
    X, score = people()
    own = (X["sex"] == "f").to_numpy()
    features = X.loc[own, ["age", "hours"]]
    truth, chosen = score[own] > 0.8, classifier.predict(features) == "yes"
    (tn, fp), (fn, tp) = confusion_matrix(truth, chosen)
    chance = classifier.predict_proba(features)[:, 1]
    found = groups["f"]
    assert found.n_rows == own.sum()
    assert found["selection rate"].value == pytest.approx(chosen.mean())
    assert found["true positive rate"].value == pytest.approx(tp / (tp + fn))
    assert found["false positive rate"].value == pytest.approx(fp / (fp + tn))
    assert found["precision"].value == pytest.approx(tp / (tp + fp))
    assert found["actual"].value == pytest.approx(truth.mean())
    assert found["predicted minus actual"].value == pytest.approx(chance.mean() - truth.mean())
    assert found["AUC"].value == pytest.approx(roc_auc_score(truth, chance))
    means = classifier.contributions(features).values.mean(axis=0)
    np.testing.assert_allclose(found.contributions[:, 0], means)
    assert (found.contribution_lower[:, 0] <= means).all()
    assert (found.contribution_upper[:, 0] >= means).all()


def test_a_group_has_the_measures_of_its_rows_alone(classifier: NAEClassifier, groups: Groups) -> None:
    X, score = people()
    own = (X["sex"] == "m").to_numpy()
    assert groups["m"].measures == quality.measure(classifier, X[own], np.where(score[own] > 0.8, "yes", "no")).measures


def test_gaps_are_named_plainly(groups: Groups) -> None:
    assert [gap.words for gap in groups.gaps] == [
        "calibration",
        "demographic parity",
        "equal opportunity",
        "false alarms",
    ]
    gap = groups.gaps[2]
    assert gap.value == groups[gap.most]["true positive rate"].value - groups[gap.least]["true positive rate"].value
    assert gap.interval is not None
    assert gap.interval[0] < gap.value < gap.interval[1]
    assert f"{gap.sentence.split(':')[0]}" == "Equal opportunity"
    assert "Rates are those of the class 'yes'." in groups.text
    calibration = groups.gaps[0]  # men are underrated by a model that does not know them
    assert (calibration.most, calibration.least, calibration.may_be_chance) == ("f", "m", False)
    assert "Mean contributions differ most in " in groups.text


def test_missing_is_a_group_and_small_ones_are_not_compared(groups: Groups) -> None:
    assert [one.name for one in groups] == ["f", "m", "missing"]
    assert groups.small == ("missing",)
    assert {gap.most for gap in groups.gaps} | {gap.least for gap in groups.gaps} <= {"f", "m"}
    assert "Too small to be compared (fewer than 30 rows): missing." in groups.text
    assert sum(one.share for one in groups) == pytest.approx(1)


def test_a_rate_of_few_rows_is_not_compared(classifier: NAEClassifier) -> None:
    X, score = people()
    y = np.where(score > 0.8, "yes", "no")
    rare = np.where((X["sex"] == "f") & (np.cumsum(y == "yes") > 20), "no", y)  # few positives among women
    found = quality.by_group(classifier, X, rare, by="sex", n_resamples=0)
    assert found["f"]["true positive rate"].n_rows < 30 < found["f"]["selection rate"].n_rows
    assert [gap.words for gap in found.gaps] == ["calibration", "demographic parity", "false alarms"]
    assert found.gaps[0].interval is None


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [2, 6])
def test_groups_drawn_at_random_seldom_have_a_gap_that_is_no_chance(classifier: NAEClassifier, n_groups: int) -> None:
    random = np.random.default_rng(3)
    found = []
    for _ in range(40):
        X, score = people(800)
        rows, by = random.integers(800, size=800), random.integers(n_groups, size=800)
        y = np.where(score[rows] > 0.8, "yes", "no")
        found += quality.by_group(classifier, X.iloc[rows], y, by=by, n_resamples=60).gaps
    assert np.mean([not gap.may_be_chance for gap in found]) < 0.1


def test_weights_count_rows(classifier: NAEClassifier) -> None:
    X, score = people(200)
    y, weight = np.where(score > 0.8, "yes", "no"), np.random.default_rng(1).integers(0, 3, 200)
    twice = np.repeat(np.arange(200), weight)
    one = quality.by_group(classifier, X, y, by="sex", sample_weight=weight, n_resamples=0)
    other = quality.by_group(classifier, X.iloc[twice], y[twice], by="sex", n_resamples=0)
    for found, expected in zip(one, other, strict=True):
        assert found.share == pytest.approx(expected.share)
        np.testing.assert_allclose(found.contributions, expected.contributions)
        assert [rate.value for rate in found.rates] == pytest.approx(
            [rate.value for rate in expected.rates], nan_ok=True
        )


def test_numbers_are_cut_and_columns_combined(classifier: NAEClassifier) -> None:
    X, score = people()
    y = np.where(score > 0.8, "yes", "no")
    found = quality.by_group(classifier, X, y, by={"age": X["age"], "sex": X["sex"].to_list()}, n_resamples=0)
    assert len(found) == 12
    assert [one.name.partition(" / ")[2] for one in found][:3] == ["f", "m", "missing"]
    assert found.by == ("age", "sex")
    sizes = [one.n_rows for one in quality.by_group(classifier, X, y, by="age", n_bins=3, n_resamples=0)]
    assert sizes == [300, 300, 300]
    beside = quality.by_group(classifier, X, y, by=np.arange(900) % 2, n_resamples=0)
    assert [one.name for one in beside] == ["0", "1"]


def test_labels_of_numbers_are_in_their_order() -> None:
    (*groups, last) = group_rows({"n": np.array([10.0, 2.0, np.nan, 2.0])}, n_bins=4)
    assert [name for name, _ in groups] == ["2", "10"]
    assert groups[0][1].tolist() == [1, 3]
    assert last[0] == "missing"


def test_numbers_have_means_and_a_log_link_a_balance() -> None:
    X, _ = people()
    random = np.random.default_rng(2)
    years = random.uniform(0.5, 1, len(X))
    y = random.poisson(years * np.exp(X["age"] / 40)).astype(float)
    model = NAERegressor("poisson", **FAST).fit(X[["age", "hours"]], y, offset=np.log(years))
    found = quality.by_group(model, X, y, by="sex", offset=np.log(years))
    own = (X["sex"] == "f").to_numpy()
    predicted = model.predict(X.loc[own, ["age", "hours"]], offset=np.log(years[own]))
    assert found["f"]["predicted over actual"].value == pytest.approx(predicted.sum() / y[own].sum())
    assert found["f"]["actual"].value == pytest.approx(y[own].mean())
    assert [gap.words for gap in found.gaps] == ["calibration", "balance"]
    with pytest.raises(DataError, match="with an offset must be measured with one"):
        quality.by_group(model, X, y, by="sex")


@pytest.mark.parametrize("kind", ["several", "quantiles", "classes"])
def test_any_model_has_groups_that_can_be_stored(kind: str) -> None:
    X, score = people(300)
    features = X[["age", "hours"]]
    if kind == "several":
        y: Any = np.stack([score, -score], axis=1)
        model: Any = NAERegressor(**FAST).fit(features, y)
    elif kind == "quantiles":
        y, model = score, NAERegressor("quantile", quantile=[0.1, 0.9], **FAST).fit(features, score)
    else:
        y = np.digitize(score, [-1, 1]).astype(str)
        model = NAEClassifier(**FAST).fit(features, y)
    found = quality.by_group(model, X, y, by="sex", n_resamples=20)
    assert Groups.from_json(found.to_json()).to_json() == found.to_json()
    assert repr(found).startswith("Groups(by sex, 3 groups, 300 rows)")
    assert len(found.to_frame()) == 3
    assert len(found.to_frame(level="contributions")) == 3 * 2 * model.model_.n_outputs
    assert set(found.to_frame(level="measures")["group"]) == {"f", "m", "missing"}
    assert len(found.gaps) > 0
    assert found.text


def test_wrong_questions_are_refused(classifier: NAEClassifier, groups: Groups) -> None:
    X, score = people(60)
    y = np.where(score > 0.8, "yes", "no")
    with pytest.raises(DataError, match=r"X has no column 'sexx'\. Did you mean 'sex'"):
        quality.by_group(classifier, X, y, by="sexx")
    with pytest.raises(DataError, match=r"by must have one value per row \(60\); 'group' has 3\."):
        quality.by_group(classifier, X, y, by=[1, 2, 3])
    with pytest.raises(ConfigError, match="n_bins must be at least 2; got 1"):
        quality.by_group(classifier, X, y, by="age", n_bins=1)
    with pytest.raises(ConfigError, match="n_resamples must be at least 0; got -1"):
        quality.by_group(classifier, X, y, by="sex", n_resamples=-1)
    with pytest.raises(UserError, match="No group is called 'x'"):
        groups["x"]
    with pytest.raises(UserError, match="No measure or rate is called 'AUK'"):
        groups["f"]["AUK"]
    with pytest.raises(UserError, match="level must be one of"):
        groups.to_frame(level="rows")
