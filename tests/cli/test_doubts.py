"""``nae predict --interval`` and ``--set``, and what ``nae show`` says of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nae as library
from nae.tables import save
from tests.cli.conftest import Command, make_table
from tests.laws.models import with_doubts


@pytest.fixture(scope="module")
def doubtful(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the models of the table, as though their members had held out rows."""
    place = tmp_path_factory.mktemp("doubts")
    for name in ("price", "sold"):
        model = with_doubts(library.load(folder / f"{name}.nae"), np.random.default_rng(0))
        save(model, place / f"{name}.nae")
    return place


def read(path: Path) -> dict[str, list[object]]:
    """Return the columns of a table."""
    return pa.parquet.read_table(path).to_pydict()


def test_intervals_are_written_beside_predictions(nae: Command, folder: Path, doubtful: Path) -> None:
    out = doubtful / "out.parquet"
    assert nae("predict", doubtful / "price.nae", folder / "homes.parquet", "--interval", "0.8", "-o", out)[0] == 0
    found = read(out)
    expected = library.load(doubtful / "price.nae").predict_interval(make_table(), 0.8)
    assert list(found) == ["prediction", "lower", "upper"]
    np.testing.assert_allclose(found["lower"], expected.lower)
    np.testing.assert_allclose(found["upper"], expected.upper)


def test_sets_are_written_beside_predictions(nae: Command, folder: Path, doubtful: Path) -> None:
    out = doubtful / "out.parquet"
    assert nae("predict", doubtful / "sold.nae", folder / "homes.parquet", "--set", "0.9", "-o", out)[0] == 0
    found = read(out)
    expected = library.load(doubtful / "sold.nae").predict_set(make_table(), 0.9)
    assert found["set"] == [", ".join(own) for own in expected.sets]
    assert found["set size"] == expected.size.tolist()


def test_a_column_of_levels_is_found_though_it_is_no_feature(nae: Command, folder: Path, doubtful: Path) -> None:
    table = make_table()
    model = library.load(folder / "price.nae").calibrated(table, table["price"], by="sold")
    save(model, doubtful / "by.nae")
    out = doubtful / "out.parquet"
    assert nae("predict", doubtful / "by.nae", folder / "homes.parquet", "--interval", "0.8", "-o", out)[0] == 0
    np.testing.assert_allclose(read(out)["upper"], model.predict_interval(table, 0.8).upper)
    assert "kept apart, by sold" in nae("show", doubtful / "by.nae")[1]


def test_ends_of_several_outputs_are_no_bounds_of_contributions(nae: Command, doubtful: Path, folder: Path) -> None:
    plain = library.load(folder / "price.nae")
    both = replace(
        plain,
        experts=np.repeat(plain.experts, 2, axis=2),
        intercept=np.repeat(plain.intercept, 2),
        outputs=("size", "town"),
        clamps=None,
        statistics=None,
        evidence=None,
        residuals=None,
    )
    save(with_doubts(both, np.random.default_rng(0)), doubtful / "both.nae")
    out = doubtful / "out.parquet"
    words = ("--interval", "0.8", "--contributions", "-o", out)
    assert nae("predict", doubtful / "both.nae", folder / "homes.parquet", *words)[0] == 0
    assert {"lower end of size", "upper end of town"} <= set(read(out))


def test_a_model_without_residuals_says_what_it_needs(nae: Command, folder: Path) -> None:
    code, _, said = nae("predict", folder / "price.nae", folder / "homes.parquet", "--interval", "0.8")
    assert code != 0
    assert "Intervals need residuals of rows that members held out" in said


def test_show_says_what_intervals_are_measured_on(nae: Command, doubtful: Path) -> None:
    assert "prediction intervals: from 198 rows that members held out; coverage measured 0.900 for 0.9" in " ".join(
        nae("show", doubtful / "price.nae")[1].split()
    )
