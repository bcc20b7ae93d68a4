"""The dial by itself: the path of additivity='auto', and what is said when a target is missed."""

import numpy as np
import pytest

from nae import NAERegressor
from nae.errors import DataError, NAEWarning
from nae.estimators.fitting import Fitted, Run, fit_model
from nae.estimators.prepared import Prepared


def product(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (n_rows, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.standard_normal(n_rows)


def test_a_callback_that_stops_a_fit_ends_the_path() -> None:
    X, y = product(400)
    model = NAERegressor(additivity="auto", n_members=1, max_epochs=40, callbacks=[lambda epoch, **_: epoch == 1])
    assert len(model.fit(X, y).additivity_path_) == 1


def test_a_time_limit_is_that_of_the_whole_path() -> None:
    X, y = product(1200)
    limits = []

    def train(prepared: Prepared, run: Run) -> Fitted:
        limits.append(prepared.settings.training.time_limit)
        return fit_model(prepared, run)

    model = NAERegressor(additivity="auto", n_members=1, max_epochs=4, time_limit=90.0, random_state=0)
    model.fit_with(train, X, y)
    assert limits[0] == pytest.approx(40.0)
    assert limits[1] < 18.0  # a fifth of what is left
    assert max(limits) < 90.0


def test_auto_goes_on_with_a_warm_start() -> None:
    X, y = product(400)
    states = []

    def train(prepared: Prepared, run: Run) -> Fitted:
        states.append(prepared.state)
        return fit_model(prepared, run)

    model = NAERegressor(n_experts=8, n_members=1, max_epochs=2, warm_start=True, random_state=0).fit(X, y)
    model.set_params(additivity="auto").fit_with(train, X, y)
    assert states[0] is not None


@pytest.mark.slow
def test_auto_walks_from_flexible_to_additive_and_keeps_one_point() -> None:
    X, y = product(1500)
    model = NAERegressor(additivity="auto", n_experts=8, n_members=2, max_epochs=60, random_state=0).fit(X, y)
    path = model.additivity_path_
    assert path[0].target is None
    assert [one.target for one in path[1:]] == sorted(one.target for one in path[1:] if one.target is not None)
    assert path[-1].additivity > path[0].additivity + 0.1
    assert sum(one.is_chosen for one in path) == 1
    chosen = next(one for one in path if one.is_chosen)
    best = min(path, key=lambda one: one.validation)
    assert chosen.validation <= best.validation + best.standard_error
    assert all(one.standard_error > 0 for one in path)


def test_auto_needs_rows_to_validate_on() -> None:
    X, y = product(1)
    with pytest.raises(DataError, match=r"additivity='auto' needs rows to validate on; got 1,"):
        NAERegressor(additivity="auto", n_members=1, max_epochs=2).fit(X, y)


def test_a_fit_without_auto_leaves_no_path_behind() -> None:
    X, y = product(400)
    model = NAERegressor(n_members=1, max_epochs=2, random_state=0).fit(X, y)
    assert not hasattr(model, "additivity_path_")


def test_a_target_that_is_missed_is_said_with_the_figure() -> None:
    X, y = product(1200)
    model = NAERegressor(additivity=0.99, n_members=1, max_epochs=3, learning_rate=0.02, random_state=1)
    with pytest.warns(NAEWarning, match=r"additivity=0\.99 was asked for and 0\.\d+ reached"):
        model.fit(X, y)


def test_what_was_asked_and_what_was_measured_travel_with_the_model() -> None:
    X, _ = product(200)
    model = NAERegressor(additivity=0.5, n_members=1, max_epochs=120, random_state=0).fit(X, np.sin(X[:, 0]))
    summary = model.model_.training.additivity
    assert summary["asked"] == 0.5
    assert 0.5 - 0.03 <= summary["measured"] <= 1.0


@pytest.mark.filterwarnings("ignore:additivity=0.7 was asked for")
@pytest.mark.parametrize("asked", [0.7, "auto"])
def test_the_additivity_that_is_checked_is_the_one_that_is_reported(asked: float | str) -> None:
    X, y = product(300)
    model = NAERegressor(additivity=asked, n_members=2, max_epochs=4, hidden_dim=8, random_state=0)
    model.fit(X, y, sample_weight=np.random.default_rng(0).uniform(0, 3, 300))
    reported = model.explain_global().additivity
    if asked == "auto":
        assert [point.additivity for point in model.additivity_path_ if point.is_chosen] == [reported]
    else:
        assert model.model_.training.additivity["measured"] == reported
