import numpy as np
import pytest

from nae._typing import AnyArray, IntArray
from nae.encoding import Category, Number
from nae.encoding.schema import Feature
from nae.explanation import with_statistics
from nae.report.density import Density, find_density
from tests.explanation.examples import explained_model
from tests.laws.models import make_model

WEEKDAY = Number("weekday", np.arange(7.0), integral=True)
WORKING = Number("workingday", np.array([0.0, 1.0]), integral=True)
DENSE = Number("dense", np.linspace(0.0, 1.0, 61))


def levels_of(features: tuple[Feature, ...], columns: dict[str, AnyArray]) -> IntArray:
    """Return the levels of the first pair."""
    model = with_statistics(make_model(np.random.default_rng(0), features=features), columns)
    listed = tuple(feature.kind == "number" and feature is not DENSE for feature in features)
    return find_density(model, model.cells(columns), listed).levels[0]


def test_no_row_lies_at_a_working_sunday_however_many_lie_beside() -> None:
    day = np.tile(np.arange(7.0), 100)
    found = levels_of((WEEKDAY, WORKING), {"weekday": day, "workingday": ((day > 0) & (day < 6)) * 1.0})
    np.testing.assert_array_equal(found[:, 0], [3, 0, 0, 0, 0, 0, 3])
    np.testing.assert_array_equal(found[:, 1], [0, 3, 3, 3, 3, 3, 0])


def test_a_row_counts_for_the_places_beside_it_along_a_number_but_never_for_missing() -> None:
    dense = Number("dense", DENSE.knots, has_missing=True)
    model = make_model(np.random.default_rng(0), features=(dense, WORKING))
    columns = {"dense": np.array([0.0, 1.0]), "workingday": np.array([0.0, 1.0])}
    model = with_statistics(model, columns)
    [found] = find_density(model, model.cells(columns), (False, True)).levels
    np.testing.assert_array_equal(found[:5, 0], [3, 2, 1, 0, 0])
    np.testing.assert_array_equal(found[-6:, 1], [0, 0, 1, 2, 3, 0])


def test_many_rows_spread_evenly_leave_nothing_to_fade() -> None:
    random = np.random.default_rng(0)
    other = Number("other", DENSE.knots)
    columns = {"dense": random.uniform(size=5000), "other": random.uniform(size=5000)}
    model = with_statistics(make_model(random, features=(DENSE, other)), columns)
    [found] = find_density(model, model.cells(columns), (False, False)).levels
    assert (found == 3).all()


def test_levels_never_seen_lie_nowhere() -> None:
    kind = Category("kind", ("a", "b"))
    found = levels_of((WEEKDAY, kind), {"weekday": np.array([0.0, 1.0]), "kind": np.array(["a", "z"], dtype=object)})
    assert np.argwhere(found).tolist() == [[0, np.argmax(found[0])]]


def test_of_many_pairs_the_strongest_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nae.report.density.MOST_PAIRS", 3)
    model, columns = explained_model(3, n_features=5, n_members=2)
    found = find_density(model, model.cells(columns), (False,) * 5)
    expected = {tuple(sorted(map(model.schema.index, (p.first, p.second)))) for p in model.top_interactions(3)}
    assert set(found.pairs) == expected


def test_levels_are_written_four_to_a_byte() -> None:
    found = Density(((0, 1),), (np.array([[1, 2, 3], [0, 3, 0]]),)).to_json()
    assert found == {"pairs": [[0, 1]], "levels": "OQM="}  # 0b00111001, 0b00000011
