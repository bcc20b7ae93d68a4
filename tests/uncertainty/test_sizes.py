"""The width of intervals adapts to the row, and the model of the width explains itself."""

import tracemalloc

import numpy as np
import pytest

from nae import NAERegressor
from nae._typing import Array
from nae.encoding import Category, Number, Schema
from nae.encoding.cells import Cells
from nae.errors import UserError
from nae.tables import TableModel
from nae.uncertainty import MemberScores, Outcomes
from nae.uncertainty.averaging import averaging_factor
from nae.uncertainty.design import make_design
from nae.uncertainty.sizes import CrossFitted, fit_sizes
from tests.uncertainty.conftest import draw_rows

SCHEMA = Schema((Number("x", np.linspace(0, 1, 9)), Number("idle", np.linspace(0, 1, 9))))


def fitted(residuals: Array, cells: Cells, score: Array, weight: Array | None = None) -> CrossFitted:
    """Return the sizes of residuals of one output."""
    n_rows = len(score)
    weight = np.ones(n_rows) if weight is None else weight
    rows = Outcomes(cells, score[:, None], score[:, None], weight, np.arange(n_rows) % 4)
    found = fit_sizes(make_design(SCHEMA, np.ones(SCHEMA.n_slots), np.ones(2)), rows, residuals[:, None])
    assert found is not None
    return found


def drawn(n_rows: int) -> tuple[Cells, Array, Array]:
    """Return cells, and residuals whose size is ``exp(2 x)``, with the score of every row, which tells nothing."""
    random = np.random.default_rng(0)
    columns = random.uniform(size=(2, n_rows))
    knots = np.minimum((8 * columns).astype(np.int64), 7)
    cells = Cells((knots + np.array([[0], [11]])).T, (8 * columns - knots).T)
    return cells, random.standard_normal(n_rows) * np.exp(2 * columns[0]), random.standard_normal(n_rows)


def test_the_size_of_residuals_is_found() -> None:
    cells, residuals, score = drawn(4000)
    sizes = fitted(residuals, cells, score).sizes
    curve, idle = sizes.size[:9, 0], sizes.size[11:20, 0]
    np.testing.assert_allclose(curve - curve.mean(), np.linspace(-1, 1, 9), atol=0.12)
    assert np.ptp(idle) < 0.12
    mean = np.sqrt(2 / np.pi) * np.exp(1.0)  # of the absolute residual where x is 0.5
    np.testing.assert_allclose(np.exp(sizes.at(cells, score[:, None])[:, 0].mean()), mean, rtol=0.05)


def test_residuals_divided_by_sizes_of_the_other_folds_are_alike_everywhere() -> None:
    cells, residuals, score = drawn(2000)
    found = fitted(residuals, cells, score)
    logs = found.of_rows(cells, score[:, None], np.arange(2000) % 4)[:, 0]
    scaled = np.abs(residuals) / np.exp(logs)
    low, high = (scaled[own].mean() for own in (cells.slot[:, 0] < 4, cells.slot[:, 0] >= 4))
    assert 0.9 < low / high < 1.1


def test_a_row_of_weight_two_counts_like_the_row_twice() -> None:
    cells, residuals, score = drawn(300)
    twice = np.repeat(np.arange(300), np.arange(300) % 2 + 1)
    weight = np.arange(300) % 2 + 1.0
    one = fitted(residuals, cells, score, weight).sizes
    fold = (np.arange(300) % 4)[twice]
    rows = Outcomes(cells.take(twice), score[twice, None], score[twice, None], np.ones(len(twice)), fold)
    two = fit_sizes(make_design(SCHEMA, np.ones(SCHEMA.n_slots), np.ones(2)), rows, residuals[twice, None])
    assert two is not None
    np.testing.assert_allclose(one.size, two.sizes.size, atol=0.02)  # the knots of the score are of unweighted rows


def test_intervals_are_wide_where_the_noise_is(regressor: NAERegressor) -> None:
    X, y = draw_rows(1, 6000)
    found = regressor.predict_interval(X)
    is_inside, is_noisy = (found.lower <= y) & (y <= found.upper), X["noise"] > 0.5
    assert found.width[is_noisy].mean() > 1.7 * found.width[~is_noisy].mean()
    for own in (is_noisy, ~is_noisy):
        assert abs(is_inside[own].mean() - 0.9) < 0.05


def test_the_model_of_the_width_names_the_feature_that_makes_it_unsure(regressor: NAERegressor) -> None:
    found = regressor.interval_model
    assert found.curves[0].feature == "noise"
    assert found["noise"].factor[-1] > 1.3
    assert found["noise"].factor[0] < 0.7
    assert type(found).from_json(found.to_json()).to_json() == found.to_json()
    assert set(found.to_frame()["feature"]) == {"slope", "noise", "idle", "(score)"}
    assert repr(found).splitlines()[1].split() == ["feature", "spread", "narrowest", "widest"]
    with pytest.raises(UserError, match="No curve is called 'age'"):
        found["age"]


def test_the_factors_of_a_row_multiply_to_its_width(regressor: NAERegressor) -> None:
    X, _ = draw_rows(1, 9)
    found, width = regressor.explain_interval(X), regressor.predict_interval(X).width
    np.testing.assert_allclose(found.size[:, 0] / found.size[0, 0], width / width[0], rtol=1e-6)
    product = found.factor[..., 0].prod(axis=1)
    np.testing.assert_allclose(product / product[0], width / width[0], rtol=1e-6)
    assert list(found.to_frame().columns) == ["size", "slope", "noise", "idle", "(score)"]


def test_intervals_of_one_width_have_no_model_of_it(line: TableModel) -> None:
    x = np.linspace(0, 1, 100)
    with pytest.raises(UserError, match="have one width for all rows"):
        _ = line.calibrated({"x": x}, np.sin(x)).interval_model


def test_rows_kept_apart_make_a_model_of_the_width_if_there_is_none(line: TableModel) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(size=4000)
    y = x + (0.1 + x) * random.standard_normal(4000)
    model = line.calibrated({"x": x[:2000]}, y[:2000])
    found = model.predict_interval({"x": x[2000:]})
    assert found.basis.n_rows == 1000
    assert np.corrcoef(found.width, x[2000:])[0, 1] > 0.95
    assert abs(np.mean((found.lower <= y[2000:]) & (y[2000:] <= found.upper)) - 0.9) < 0.03


def test_the_mean_of_members_is_as_much_more_exact_as_their_residuals_tell() -> None:
    """Members whose residuals share a variance of 3 and have one of 1 of their own, shrunk by learning.

    Of the ratio of 1 to 4, 85 % are believed.
    """
    random = np.random.default_rng(0)
    shared, own = np.sqrt(3) * random.standard_normal((40_000, 1)), random.standard_normal((40_000, 8))
    shrunk = (shared + own) * random.uniform(0.2, 1.0, (40_000, 1))
    holds = np.arange(40_000)[:, None] % 8 == np.arange(8)
    scores = np.zeros((40_000, 1, 8))
    members = MemberScores(np.arange(40_000), scores, ~holds, n_held=1.0)
    factor = averaging_factor(shrunk[:, None], np.ones(40_000), members)
    np.testing.assert_allclose(factor, np.sqrt(1 - 0.85 / 4 * 7 / 8), rtol=0.01)


def test_many_levels_and_many_features_take_little_memory() -> None:
    levels = tuple(map(str, range(20_000)))
    schema = Schema((Category("town", levels), *(Number(f"x{i}", np.arange(40.0)) for i in range(300))))
    tracemalloc.start()
    design = make_design(schema, np.ones(schema.n_slots), np.arange(301)[::-1].astype(float))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(design.features) == 128
    assert sum(design.sizes) < 600
    assert peak < 10_000_000
