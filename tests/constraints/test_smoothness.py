"""Smooth curves: a penalty that straight lines do not pay, and a search for how much of it validation bears."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nae
from nae.constraints import read_smoothness
from nae.encoding import Category, Number, Schema
from nae.errors import ConfigError, DataError
from nae.network import Roughness

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(size=(400, 2))
Y = X[:, 0] + 0.5 * RANDOM.normal(size=400)
SMALL: dict[str, Any] = {"random_state": 0, "n_members": 2, "max_epochs": 60, "additivity": 1.0, "n_knots": 30}
NO_START = {**SMALL, "output_penalty": 1e-9}  # small tables would begin at curves that are smooth already
SCHEMA = Schema((Number("age", np.arange(5.0)), Category("city", ("a", "b"))))


def roughness(model: Any, feature: int = 0) -> float:
    """Return the mean absolute turn of a curve, as a share of its range."""
    knots = model.model_.schema.features[feature].knots
    curve = model.model_.experts[model.model_.schema.slots(feature)][: len(knots)].mean(axis=(1, 2, 3))
    return float(np.abs(np.diff(np.diff(curve) / np.diff(knots))).mean() / np.ptp(curve))


def residual(left: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(y[1:-1] - left[1:-1] * y[:-2] - (1 - left[1:-1]) * y[2:])


@given(widths=st.lists(st.floats(0.01, 10), min_size=3, max_size=9), slope=st.floats(-5, 5), level=st.floats(-5, 5))
def test_straight_lines_pay_nothing(widths: list[float], slope: float, level: float) -> None:
    places = np.cumsum(widths)[None]
    found = Roughness.of(np.ones(1), places, np.array([len(widths)]))
    assert (found.weight[0, 1:-1] > 0).all()
    assert found.weight[0, [0, -1]].tolist() == [0, 0]
    line = level + slope * places[0]
    assert np.abs(residual(found.left[0], line)).max() < 1e-9
    bent = line + (np.arange(len(line)) == 1)
    assert np.abs(residual(found.left[0], bent)).max() > 0.5


def test_a_parabola_pays_the_same_for_any_number_of_knots() -> None:
    paid = []
    for n in (20, 80):
        places = np.linspace(0, 1, n)[None]
        found = Roughness.of(np.ones(1), places, np.array([n]))
        paid.append(float((found.weight[0, 1:-1] * residual(found.left[0], places[0] ** 2) ** 2).sum()))
    assert paid[1] == pytest.approx(paid[0], rel=0.2)


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_curves_get_smoother(engine: str) -> None:
    rough, smooth = (nae.NAERegressor(engine=engine, smoothness=s, **NO_START).fit(X, Y) for s in (None, 30.0))
    assert roughness(smooth) < 0.3 * roughness(rough)


def test_one_feature_alone_can_be_smooth() -> None:
    rough, one = (nae.NAERegressor(smoothness=s, **NO_START).fit(X, Y) for s in (None, {"x0": 30.0}))
    assert roughness(one) < 0.3 * roughness(rough)
    assert roughness(one, 1) > 0.5 * roughness(rough, 1)


def test_validation_chooses_the_smoothness() -> None:
    wave = np.sin(40 * X[:, 0]) + 0.1 * RANDOM.normal(size=len(X))
    chosen = [nae.NAERegressor(smoothness="auto", **SMALL).fit(X, y).smoothness_ for y in (Y, wave)]
    assert chosen[0] > chosen[1]


def test_only_a_search_leaves_what_it_chose() -> None:
    model = nae.NAERegressor(smoothness="auto", **{**SMALL, "max_epochs": 4}).fit(X, Y)
    assert model.smoothness_ > 0
    assert not hasattr(model.set_params(smoothness=1.0).fit(X, Y), "smoothness_")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (-1.0, "at least 0"),
        ("smooth", "got 'smooth'"),
        ({"aeg": 1.0}, "Did you mean 'age'"),
        ({"city": 1.0}, "'city' is a category"),
        ({"age": "auto"}, "got 'auto' for 'age'"),
        (True, "got True"),
    ],
    ids=str,
)
def test_what_is_no_smoothness_is_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_smoothness(given, SCHEMA)
    assert sentence in str(caught.value)


def test_a_search_needs_rows_to_validate_on() -> None:
    with pytest.raises(DataError, match="smoothness='auto' needs rows to validate on"):
        nae.NAERegressor(smoothness="auto").fit(X[:1], Y[:1])


def test_two_searches_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match="cannot both be 'auto'"):
        nae.NAERegressor(smoothness="auto", additivity="auto").fit(X, Y)


def test_the_papers_network_has_no_curves_to_smooth() -> None:
    with pytest.raises(ConfigError, match="smoothness needs encoder='piecewise'"):
        nae.NAERegressor(smoothness=1.0, encoder="mlp").fit(X, Y)
