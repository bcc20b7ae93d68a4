"""Prediction sets hold the class of the share of new rows that they state."""

from pathlib import Path

import numpy as np
import pytest

import nae
from nae import NAEClassifier
from nae.errors import UserError
from nae.uncertainty import MemberScores
from nae.uncertainty.averaging import averaging_shift, odds_against
from tests.uncertainty.conftest import draw_rows


def draw_classes(seed: int, n_rows: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return rows and their classes, as numbers."""
    X, y = draw_rows(seed, n_rows)
    return X, np.digitize(y, (1.0, 2.0))


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_as_many_new_rows_have_their_class_in_their_set_as_asked_for(
    classifier: NAEClassifier, coverage: float
) -> None:
    X, y = draw_classes(1, 4000)
    found = classifier.predict_set(X, coverage, allow_empty=True)
    assert abs(found.contains[np.arange(len(y)), y].mean() - coverage) < 0.03


def test_sets_are_never_empty_unless_asked(classifier: NAEClassifier) -> None:
    X, _ = draw_classes(1, 500)
    found, free = (classifier.predict_set(X, 0.3, allow_empty=own) for own in (False, True))
    assert found.size.min() == 1
    assert free.size.min() == 0
    assert (found.contains >= free.contains).all()
    assert [one[0] for one in found.sets] == [str(own) for own in classifier.predict(X)]


def test_a_file_has_the_same_sets_as_the_estimator(classifier: NAEClassifier, tmp_path: Path) -> None:
    classifier.save(tmp_path / "m.nae")
    X, _ = draw_classes(1, 50)
    found = nae.load(tmp_path / "m.nae").predict_set(X)
    assert found.to_json() == classifier.predict_set(X).to_json()
    assert type(found).from_json(found.to_json()).sets == found.sets
    assert list(found.to_frame()["size"]) == found.size.tolist()
    assert "PredictionSet(50 rows, 0.9, from 600 out-of-fold rows" in repr(found)


def test_rows_kept_apart_guarantee_the_coverage(classifier: NAEClassifier) -> None:
    X, y = draw_classes(1, 4000)
    found = classifier.predict_set(X, 0.9, calibrate_on=draw_classes(2, 3000), allow_empty=True)
    assert found.basis.is_guaranteed
    assert 0.88 < found.contains[np.arange(len(y)), y].mean() < 0.93


def test_a_model_of_either_class_has_the_same_sets() -> None:
    X, y = draw_rows(0, 200)
    settings = {"random_state": 0, "n_members": 4, "max_epochs": 5, "n_jobs": 1, "validation_size": 0.25}
    model = NAEClassifier(positive_class=False, **settings).fit(X, y > 1.5)
    other = model.model_.for_class("True")
    own, mirrored = model.predict_set(X), other.predict_set(X)
    assert list(map(sorted, own.sets)) == list(map(sorted, mirrored.sets))


def test_a_classifier_has_no_intervals(classifier: NAEClassifier) -> None:
    with pytest.raises(UserError, match=r"predict_interval needs a model of numbers; .* Use predict_set"):
        classifier.predict_interval(draw_classes(1, 3)[0])


def test_log_odds_against_the_truth_are_those_of_its_probability() -> None:
    random = np.random.default_rng(0)
    score, truth = random.standard_normal((50, 4)), random.integers(4, size=50)
    chance = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    own = chance[np.arange(50), truth]
    np.testing.assert_allclose(odds_against(score, truth), np.log((1 - own) / own))
    two = odds_against(score[:, :1], truth % 2)
    np.testing.assert_allclose(two, np.where(truth % 2, -1, 1) * score[:, 0])


def test_averaging_members_lowers_the_odds_against_one_of_several_classes() -> None:
    """The gain of all members is estimated from those that learned from a row, whose scores say less about it."""
    random = np.random.default_rng(0)
    truth = random.integers(4, size=20_000)
    pull = 3 * (truth[:, None] == np.arange(4))[..., None]
    noise, new = random.standard_normal((2, 20_000, 4, 8))
    holds = np.arange(20_000)[:, None] % 8 == np.arange(8)
    members = MemberScores(np.arange(20_000), pull + noise, ~holds, n_held=1.0)
    found = averaging_shift(truth, np.ones(20_000), members)
    gains = odds_against((pull + new).mean(axis=-1), truth) - odds_against((pull + new)[..., 0], truth)
    np.testing.assert_allclose(found, gains.mean(), atol=0.03)
    assert found < -0.2
    two = MemberScores(members.rows, noise[:, :1], ~holds, n_held=1.0)
    assert averaging_shift(truth % 2, np.ones(20_000), two) == 0.0
