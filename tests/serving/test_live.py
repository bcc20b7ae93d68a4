"""The server under load: nothing wrong, nothing dropped, whatever changes beneath it."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import nae
from nae.serving import Registry
from nae.tables import TableModel, save
from tests.serving.conftest import make_rows, serving, train
from tests.serving.test_answers import records


def wait_for(condition: object, seconds: float = 30) -> None:
    """Wait until a question is answered with yes."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_many_clients_at_once_get_no_wrong_answer(models: Path) -> None:
    expected = {name: nae.load(models / f"{name}.nae").predict(make_rows(40, 1)) for name in ("number", "count")}
    rows = records(40)

    with serving(models) as client:
        url = client.base_url

        def ask(worker: int) -> int:
            random, wrong = np.random.default_rng(worker), 0
            with httpx.Client(base_url=url, timeout=60, trust_env=False) as own:
                for _ in range(25):
                    name = ("number", "count")[random.integers(2)]
                    picked = random.integers(0, 40, size=random.integers(1, 6))
                    body = {"rows": [rows[i] for i in picked]}
                    found = own.post(f"/models/{name}/predict", json=body).json()["predictions"]
                    wrong += not np.allclose(found, expected[name][picked], rtol=1e-6)
            return wrong

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(ask, range(8))) == 0


def test_models_are_exchanged_under_load_without_a_dropped_or_mixed_answer(tmp_path: Path) -> None:
    path, rows = tmp_path / "served" / "m.nae", records(3)
    path.parent.mkdir()
    versions = [train("number", seed=seed) for seed in (0, 1)]
    for i, model in enumerate(versions):
        save(model, tmp_path / f"{i}.nae")

    def install(version: int) -> None:
        copy = tmp_path / "copy"
        copy.write_bytes((tmp_path / f"{version}.nae").read_bytes())
        copy.replace(path)

    install(0)
    with serving(path.parent, reload_seconds=0.02) as client:
        expected = {client.get("/models").json()["models"][0]["version"]: versions[0].predict(make_rows(3, 1))}
        install(1)
        wait_for(lambda: client.get("/models").json()["models"][0]["version"] not in expected)
        expected[client.get("/models").json()["models"][0]["version"]] = versions[1].predict(make_rows(3, 1))
        done, seen, wrong = threading.Event(), Counter[str](), []

        def ask() -> None:
            with httpx.Client(base_url=client.base_url, timeout=60, trust_env=False) as own:
                while not done.is_set():
                    answer = own.post("/predict", json={"rows": rows})
                    found = answer.json()
                    if answer.status_code != 200 or found["predictions"] != expected[found["version"]].tolist():
                        wrong.append(found)
                    seen[found["version"]] += 1

        workers = [threading.Thread(target=ask) for _ in range(4)]
        for worker in workers:
            worker.start()
        for turn in range(6):
            install(turn % 2)
            time.sleep(0.25)
        done.set()
        for worker in workers:
            worker.join()
    assert wrong == []
    assert set(seen) == set(expected)


def test_a_broken_file_leaves_the_model_before_it_in_service(tmp_path: Path) -> None:
    path = tmp_path / "m.nae"
    save(train("number"), path)
    registry = Registry.open(tmp_path)
    before = registry.models["m"]
    path.write_bytes(path.read_bytes()[:1000])
    assert not registry.refresh()
    assert registry.models["m"] is before
    assert registry.n_failures == 1
    assert not registry.refresh()
    assert registry.n_failures == 1  # the same broken file is not read again and again
    save(train("number", seed=1), path)
    assert registry.refresh()
    assert registry.models["m"].version != before.version


@pytest.mark.slow
def test_compiled_models_answer_the_same(models: Path) -> None:
    pytest.importorskip("numba")
    registry = Registry.open(models / "three.nae", is_compiled=True)
    assert registry.models["three"].model.kernel is not None
    with serving(models / "three.nae", is_compiled=True) as client:
        for n_rows in (1, 30):
            answer = client.post("/predict", json={"rows": records(30)[:n_rows]}).json()
            model = nae.load(models / "three.nae")
            found = [[row[label] for label in model.classes] for row in answer["probabilities"]]
            np.testing.assert_allclose(found, model.predict_proba(make_rows(30, 1))[:n_rows], atol=1e-6)


def test_models_come_and_go_with_their_files(tmp_path: Path) -> None:
    model: TableModel = train("number")
    save(model, tmp_path / "a.nae")
    with serving(tmp_path, reload_seconds=0.02) as client:
        save(model, tmp_path / "b.nae")
        wait_for(lambda: client.get("/healthz").json()["models"] == ["a", "b"])
        assert client.post("/models/b/predict", json={"rows": [{}]}).status_code == 200
        (tmp_path / "a.nae").unlink()
        wait_for(lambda: client.get("/healthz").json()["models"] == ["b"])
        assert client.get("/models/a/model").status_code == 404
        assert "/predict" in client.get("/openapi.json").json()["paths"]
        assert "nae_reloads_total 2" in client.get("/metrics").text


@pytest.mark.slow
def test_a_request_that_runs_when_the_server_is_told_to_stop_is_finished(models: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "nae.cli", "serve", str(models / "number.nae"), "--port", "0"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr)
    wait_for(lambda: "documentation" in log.read_text(), seconds=60)
    port = int(log.read_text().split("http://127.0.0.1:")[1].split()[0])
    wait_for(lambda: answers(port))
    body = json.dumps({"rows": records(10)}).encode()
    head = [
        "POST /predict HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        wire.sendall("\r\n".join([*head, "", ""]).encode() + body[:50])
        time.sleep(0.5)  # the request has begun
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: not answers(port))  # nobody new is let in
        assert process.poll() is None
        wire.sendall(body[50:])
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")
    found = json.loads(answer.split(b"\r\n\r\n", 1)[1])["predictions"]
    np.testing.assert_allclose(found, nae.load(models / "number.nae").predict(make_rows(10, 1)), rtol=1e-6)
    assert process.wait(timeout=30) == 0


def answers(port: int) -> bool:
    """Return whether somebody listens."""
    try:
        with httpx.Client(trust_env=False) as client:
            return client.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("source", ["number.nae", "."])
def test_the_server_keeps_what_its_document_promises(models: Path, source: str) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings
    from schemathesis.generation import GenerationMode

    with serving(models / source) as client:
        document = client.get("/openapi.json").json()
        schema = schemathesis.openapi.from_dict(document)
        operations = [found.ok() for found in schema.get_all_operations()]
        assert len(operations) == (7 if source == "number.nae" else 19)
        for operation in operations:
            for mode in GenerationMode:
                if mode is GenerationMode.NEGATIVE and operation.method.lower() != "post":
                    continue  # nothing can be wrong about a question without a body

                @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
                @given(case=operation.as_strategy(generation_mode=mode))
                def check(case: Any) -> None:
                    case.call_and_validate(base_url=str(client.base_url))

                check()
