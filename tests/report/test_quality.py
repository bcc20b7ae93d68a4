import numpy as np
import pytest

from nae.report.quality import area_under_curve, measure_quality
from nae.report.rows import ReportRows
from tests.explanation.examples import explained_model


def test_the_area_under_the_curve_is_the_share_of_pairs_in_the_right_order() -> None:
    random = np.random.default_rng(0)
    score, truth = random.integers(5, size=60).astype(float), random.integers(2, size=60)
    pairs = [(s > t) + (s == t) / 2 for s in score[truth == 1] for t in score[truth == 0]]
    assert area_under_curve(score, truth) == pytest.approx(np.mean(pairs))


def test_numbers_are_measured_against_their_mean_where_the_truth_is_known() -> None:
    model, columns = explained_model(1)
    truth = np.arange(12.0)[:, None]
    truth[3] = np.nan
    quality = measure_quality(
        model, model.cells(columns), ReportRows(columns, truth, "y", np.arange(1, columns.n_rows + 1))
    )
    assert quality is not None
    known = np.delete(np.arange(12), 3)
    error = model.predict(columns)[known] - truth[known, 0]
    scores = {score.name: score for score in quality.scores}
    assert quality.n_rows == 11
    assert scores["RMSE"].model == pytest.approx(np.sqrt(np.mean(error**2)))
    assert scores["RMSE"].baseline == pytest.approx(truth[known].std())
    assert scores["mean absolute error"].model == pytest.approx(np.abs(error).mean())
    assert scores["explained variance, R²"].model == pytest.approx(1 - np.mean(error**2) / truth[known].var())


def test_classes_are_measured_against_their_shares() -> None:
    model, columns = explained_model(2, n_outputs=3)
    truth = (np.arange(12) % 3)[:, None].astype(float)
    quality = measure_quality(
        model, model.cells(columns), ReportRows(columns, truth, "y", np.arange(1, columns.n_rows + 1))
    )
    assert quality is not None
    probability = model.predict_proba(columns)
    scores = {score.name: score for score in quality.scores}
    assert set(scores) == {"accuracy", "log loss"}
    assert scores["accuracy"].baseline == pytest.approx(1 / 3)
    assert scores["log loss"].baseline == pytest.approx(np.log(3))
    chosen = probability[np.arange(12), truth[:, 0].astype(int)]
    assert scores["log loss"].model == pytest.approx(-np.log(chosen).mean())


@pytest.mark.parametrize("target", [None, np.full((12, 1), np.nan)])
def test_without_truth_nothing_is_measured(target: np.ndarray | None) -> None:
    model, columns = explained_model(1)
    assert (
        measure_quality(model, model.cells(columns), ReportRows(columns, target, "y", np.arange(1, columns.n_rows + 1)))
        is None
    )
