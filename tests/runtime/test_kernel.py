"""The compiled kernel beyond its answers (tests/agreement): any number of rows, cells, and errors."""

import numpy as np
import pytest

from nae.encoding import Columns
from nae.errors import DataError, MissingDependencyError
from nae.tables import TableModel
from nae.tables.routing import ROUTINGS
from tests.laws.models import make_model, make_table

pytest.importorskip("numba", reason="the kernel needs numba")
pytestmark = pytest.mark.slow  # compiling takes seconds


def pair(seed: int = 0, n_rows: int = 150, **shape: object) -> tuple[TableModel, TableModel, Columns]:
    """Return a model, the same model compiled, and rows."""
    random = np.random.default_rng(seed)
    model = make_model(random, **shape)
    return model, model.compile(), make_table(random, model.schema, n_rows)


@pytest.mark.parametrize("routing", sorted(ROUTINGS))
def test_bounds_hold_to_the_last_digit(routing: str) -> None:
    _, fast, table = pair(routing=routing, n_members=3, n_outputs=2, dtype=np.float32)
    found = fast.contributions(table)
    assert np.all(found.lower <= found.values)
    assert np.all(found.values <= found.upper)


@pytest.mark.parametrize("n_rows", [0, 1, 15, 16, 63, 64, 65, 2000])
def test_any_number_of_rows_gives_the_rows_one_by_one(n_rows: int) -> None:
    model, fast, table = pair(gate="low-rank", n_rows=n_rows)
    np.testing.assert_allclose(fast.decision_function(table), model.decision_function(table), rtol=0, atol=1e-6)
    assert len(fast.contributions(table)) == n_rows


def test_the_kernel_finds_the_same_cells() -> None:
    model, fast, table = pair(n_features=12, n_rows=1500)
    expected, found = model.cells(table), fast.cells(table)
    np.testing.assert_array_equal(found.slot, expected.slot)
    np.testing.assert_array_equal(found.fraction, expected.fraction)


def test_a_wrong_number_of_columns_is_the_same_error() -> None:
    _, fast, _ = pair()
    with pytest.raises(DataError, match="must have the 3 columns"):
        fast.decision_function(np.zeros((2, 2)))


def test_expert_values_come_from_numpy() -> None:
    model, fast, table = pair()
    expected = model.contributions(table, with_experts=True)
    np.testing.assert_array_equal(fast.contributions(table, with_experts=True).experts, expected.experts)


def test_without_numba_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    with pytest.raises(MissingDependencyError, match=r"neural-additive-experts\[fast\]"):
        make_model(np.random.default_rng(0)).compile()
