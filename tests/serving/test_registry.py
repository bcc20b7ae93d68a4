"""The registry survives whatever lies in its folder, and serves nothing that does not lie there."""

from pathlib import Path
from typing import Any

import pytest

from nae.errors import FormatError
from nae.serving import Registry, registry
from nae.tables import load as load_model
from nae.tables import save
from tests.serving.conftest import serving, train
from tests.serving.test_live import wait_for


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    """Return a folder of one model."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.nae").write_bytes((models / "number.nae").read_bytes())
    return tmp_path / "served"


@pytest.mark.parametrize(
    "error", [TypeError("not a mapping"), RecursionError("too deep"), MemoryError(), KeyError("x")]
)
def test_a_file_that_raises_anything_stops_no_other(
    folder: Path, models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    found, load = Registry.open(folder), load_model

    def fail(file: Path) -> Any:
        if file.stem == "bad":
            raise error
        return load(file)

    monkeypatch.setattr(registry, "load", fail)
    for name in ("bad", "c"):
        (folder / f"{name}.nae").write_bytes((models / "two.nae").read_bytes())
    assert found.refresh()
    assert found.names == ("a", "c")
    assert found.n_failures == 1
    assert f"bad.nae is not loaded: {type(error).__name__}" in caplog.text
    assert not found.refresh()
    assert found.n_failures == 1  # not read again and again


def test_a_model_that_cannot_be_prepared_stops_no_other(
    folder: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nae.serving import app
    from nae.serving.responder import make_responder

    make = make_responder

    def fail(served: Any, limits: Any, **settings: Any) -> Any:
        if served.name == "bad":
            raise TypeError
        return make(served, limits, **settings)

    monkeypatch.setattr(app, "make_responder", fail)
    with serving(folder, reload_seconds=0.02) as client:
        for name in ("bad", "c"):
            (folder / f"{name}.part").write_bytes((models / "two.nae").read_bytes())
            (folder / f"{name}.part").rename(folder / f"{name}.nae")
        wait_for(lambda: client.get("/models/c/model").status_code == 200)
        assert client.get("/models/bad/model").status_code == 404
        assert client.get("/models/a/model").status_code == 200
        assert "nae_reload_failures_total 1\n" in client.get("/metrics").text


def test_a_look_that_fails_is_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(folder, reload_seconds=0.02) as client:
        monkeypatch.setattr(Registry, "refresh", lambda _: 1 / 0)
        wait_for(lambda: "nae_reload_failures_total 0\n" not in client.get("/metrics").text)


def test_a_link_out_of_the_folder_is_not_served(folder: Path, models: Path) -> None:
    found = Registry.open(folder)
    (folder / "b.nae").symlink_to(models / "two.nae")
    (folder / "c.nae").symlink_to("a.nae")
    assert found.refresh()
    assert found.names == ("a", "c")
    assert found.n_failures == 1
    with pytest.raises(FormatError, match=r"must lie in the folder; .*b\.nae is a link out of it"):
        Registry.open(folder)


def test_a_single_file_may_be_a_link(folder: Path, models: Path) -> None:
    (folder / "b.nae").symlink_to(models / "two.nae")
    assert Registry.open(folder / "b.nae").names == ("b",)


def test_the_last_file_of_a_folder_withdraws_its_model(folder: Path) -> None:
    with serving(folder, reload_seconds=0.02) as client:
        (folder / "a.nae").unlink()
        wait_for(lambda: client.get("/healthz").json()["models"] == [])
        answer = client.post("/predict", json={"rows": [{}]})
        assert (answer.status_code, answer.json()["error"]) == (404, "No model is in service.")
        assert client.get("/openapi.json").status_code == 200


def test_a_folder_that_is_removed_withdraws_its_models(folder: Path) -> None:
    found = Registry.open(folder)
    (folder / "a.nae").unlink()
    folder.rmdir()
    assert found.refresh()
    assert found.names == ()


def test_a_single_file_may_vanish_for_one_look_while_it_is_replaced(folder: Path) -> None:
    path = folder / "a.nae"
    found = Registry.open(path)
    path.unlink()
    assert not found.refresh()
    assert found.names == ("a",)
    save(train("number", seed=1), path)
    assert found.refresh()
    path.unlink()
    assert not found.refresh()
    assert found.refresh()
    assert found.names == ()
    save(train("number"), path)
    assert found.refresh()
    assert found.names == ("a",)
