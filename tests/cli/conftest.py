from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from nae.cli.app import run

Command = Callable[..., tuple[int, str, str]]


def make_table(n_rows: int = 300) -> pa.Table:
    """Return a small table of numbers, categories, a boolean, missing values, a number and a class to predict."""
    random = np.random.default_rng(0)
    size = random.uniform(20, 200, size=n_rows)
    town = np.array(["Ulm", "Köln", "Aa;chen"])[random.integers(0, 3, size=n_rows)]
    has_garden = random.uniform(size=n_rows) > 0.5
    price = size * np.where(town == "Ulm", 2.0, 3.0) + 30 * has_garden
    shown = [None if i % 17 == 0 else float(value) for i, value in enumerate(size.round(2))]
    return pa.table(
        {
            "size": shown,
            "town": town.tolist(),
            "garden": has_garden.tolist(),
            "price": price.round(2),
            "sold": np.where(price > 350, "yes", "no").tolist(),
        }
    )


@pytest.fixture
def nae(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command line in this process: exit code, stdout, stderr."""

    def call(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table and two models of it."""
    place = tmp_path_factory.mktemp("cli")
    table = make_table()
    pa.parquet.write_table(table, place / "homes.parquet")
    data = place / "homes.parquet"
    shared = ["--members", "1", "--epochs", "12", "--quiet"]
    assert run(["fit", f"{data}", "-t", "price", "--ignore", "sold", "-o", f"{place / 'price.nae'}", *shared]) == 0
    assert run(["fit", f"{data}", "-t", "sold", "--ignore", "price", "-o", f"{place / 'sold.nae'}", *shared]) == 0
    return place
