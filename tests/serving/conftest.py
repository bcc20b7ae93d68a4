import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn

from nae import NAEClassifier, NAERegressor, TableModel
from nae.serving import Limits, Registry, make_app
from nae.tables import save

LIMITS = Limits(max_rows=50, max_explained_rows=20, max_body_bytes=20_000)


def make_rows(n_rows: int = 120, seed: int = 0) -> dict[str, list[object]]:
    """Return columns of every kind: a number, whole numbers, a boolean, text, and text that is a number."""
    random = np.random.default_rng(seed)
    return {
        "size": [None if i % 9 == 0 else float(v) for i, v in enumerate(random.uniform(20, 200, n_rows).round(1))],
        "rooms": random.integers(1, 7, n_rows).tolist(),
        "garden": (random.uniform(size=n_rows) > 0.5).tolist(),
        "town": np.array(["Ulm", "Köln", "Bonn"])[random.integers(0, 3, n_rows)].tolist(),
        "zone": np.array(["1", "2"])[random.integers(0, 2, n_rows)].tolist(),
    }


def train(kind: str, *, seed: int = 0) -> TableModel:
    """Return a small model: 'number', 'two' classes, 'three' classes or a 'count'."""
    X, random = make_rows(), np.random.default_rng(seed)
    score = np.array(X["rooms"]) * np.where(np.array(X["town"]) == "Ulm", 1.0, -1.0) + random.normal(size=120)
    settings = {"n_members": 1, "max_epochs": 4, "random_state": seed}
    if kind == "number":
        return NAERegressor(**settings).fit(X, score).model_
    if kind == "count":
        return NAERegressor("poisson", **settings).fit(X, np.exp(score / 3)).model_
    labels = np.array(["low", "middle", "high"])[np.digitize(score, [-2, 2])]
    return NAEClassifier(**settings).fit(X, labels if kind == "three" else labels == "high").model_


@contextmanager
def serving(
    source: Path,
    *,
    limits: Limits = LIMITS,
    reload_seconds: float | None = None,
    is_compiled: bool = False,
    **settings: object,
) -> Iterator[httpx.Client]:
    """Serve models on a free loopback port and yield a client of it."""
    app = make_app(Registry.open(source, is_compiled=is_compiled), limits, reload_seconds=reload_seconds, **settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of four models."""
    folder = tmp_path_factory.mktemp("models")
    for kind in ("number", "two", "three", "count"):
        promise = {"max_effect": {"size": 1e6}}
        save(train(kind).with_training(target="y", constraints=promise), folder / f"{kind}.nae")
    return folder


@pytest.fixture(scope="module")
def client(models: Path) -> Iterator[httpx.Client]:
    """Return a client of a server of one model, of numbers."""
    with serving(models / "number.nae") as found:
        yield found


@pytest.fixture(scope="module")
def many(models: Path) -> Iterator[httpx.Client]:
    """Return a client of a server of all models."""
    with serving(models) as found:
        yield found
