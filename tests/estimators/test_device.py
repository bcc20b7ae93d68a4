"""Where a fit runs, and what becomes of batches that do not fit there."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

import nae
from nae import NAERegressor
from nae.engines import make_engine
from nae.errors import NAEWarning

N_ROWS = 600


def make_table() -> pa.Table:
    random = np.random.default_rng(0)
    X = random.standard_normal((N_ROWS, 2))
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] + X[:, 1]})


def small(**params: Any) -> NAERegressor:
    return NAERegressor(n_members=1, n_experts=2, n_knots=8, max_epochs=2, random_state=0, **params)


@pytest.fixture
def room_for_100_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device whose memory ends at batches of 100 rows."""
    real = make_engine

    def make(place: Any, job: Any) -> Any:
        if job.config.batch_size > 100:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7.00 GiB.")
        return real(place, job)

    monkeypatch.setattr("nae.estimators.fitting.make_engine", make)


@pytest.mark.usefixtures("room_for_100_rows")
def test_too_large_a_batch_gives_the_model_of_a_smaller_one() -> None:
    table = make_table()
    X, y = table.select(["a", "b"]), np.array(table["y"])
    with pytest.warns(NAEWarning, match="training begins again with") as said:
        shrunk = small(batch_size=320).fit(X, y)
    assert [str(one.message).split()[2] for one in said] == ["320", "160"]
    np.testing.assert_array_equal(shrunk.predict(X), small(batch_size=80).fit(X, y).predict(X))


@pytest.mark.usefixtures("room_for_100_rows")
def test_a_scan_trains_with_smaller_batches_too(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(make_table(), path)
    with pytest.warns(NAEWarning, match="training begins again with 80"):
        model = small(batch_size=160).fit(nae.scan(path), y="y")
    assert model.history_.epochs


def test_the_device_is_logged_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    table = make_table()
    with caplog.at_level(logging.INFO, logger="nae"):
        model = small(engine="torch").fit(table.select(["a", "b"]), np.array(table["y"]))
    assert [record.getMessage() for record in caplog.records] == ["training by the engine torch on cpu: as asked for"]
    assert (model.model_.training.device, model.model_.training.engine) == ("cpu", "torch")
