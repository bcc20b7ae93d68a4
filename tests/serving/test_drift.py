from pathlib import Path

import httpx
import pytest

from nae.monitoring import Tally, judge
from nae.serving import Registry
from nae.serving.limits import Limits
from nae.serving.responder import make_responder
from nae.serving.watch import drift_lines
from nae.tables import load
from tests.laws.models import make_model
from tests.serving.conftest import make_rows, serving


def records(n_rows: int, **changes: object) -> list[dict[str, object]]:
    """Return rows of a request."""
    columns = make_rows(n_rows, seed=5)
    return [{name: values[row] for name, values in columns.items()} | changes for row in range(n_rows)]


def metrics(client: httpx.Client) -> dict[str, float]:
    """Return the values of /metrics by name."""
    lines = client.get("/metrics").text.splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def test_metrics_tell_the_drift_of_requests_by_feature(models: Path) -> None:
    with serving(models / "number.nae", watches_drift=True) as client:
        assert not any(name.startswith("nae_drift_psi{") for name in metrics(client))
        for row in records(40, town="Rome"):
            assert client.post("/predict", json={"rows": [row]}).status_code == 200
        client.post("/predict", json={"rows": records(50, town="Rome")})
        client.post("/explain", json={"rows": records(3)})
        found = metrics(client)
    assert found['nae_drift_rows{model="number"}'] == 90
    assert found['nae_drift{model="number",feature="town"}'] == 1
    assert found['nae_drift_new_share{model="number",feature="town"}'] == 1
    assert found['nae_drift{model="number",feature="rooms"}'] == 0
    rows = records(40, town="Rome") + records(50, town="Rome")
    expected = load(models / "number.nae").drift({name: [row[name] for row in rows] for name in rows[0]})
    assert found['nae_drift_psi{model="number",feature="size"}'] == pytest.approx(
        expected["size"]["values"].size, rel=1e-5
    )
    assert found['nae_drift_score{model="number"}'] == pytest.approx(expected.score[0].size, rel=1e-5)


def test_drift_is_not_watched_unless_it_is_asked_for(client: httpx.Client) -> None:
    client.post("/predict", json={"rows": records(3)})
    assert "nae_drift" not in client.get("/metrics").text


def test_a_watch_holds_a_bounded_number_of_rows(models: Path) -> None:
    served = Registry.open(models / "number.nae").models["number"]
    watch = make_responder(served, Limits(), watches_drift=True).watch
    assert watch is not None
    for _ in range(60):
        watch.add(records(10))
        assert len(watch._waiting) < 256
    found = watch.drift()
    assert found is not None
    assert found.n_rows == 600


def test_a_model_without_statistics_is_served_unwatched(tmp_path: Path) -> None:
    import numpy as np

    make_model(np.random.default_rng(0)).save(tmp_path / "plain.nae")
    served = Registry.open(tmp_path / "plain.nae").models["plain"]
    assert make_responder(served, Limits(), watches_drift=True).watch is None
    assert list(drift_lines({})) == []


def test_names_are_escaped(models: Path) -> None:
    tally = Tally(load(models / "number.nae"))
    tally.add(tally.model._explained_columns(make_rows(20)))
    lines = list(drift_lines({'a"b': judge(tally)}))
    assert 'nae_drift_rows{model="a\\"b"} 20' in lines
