"""Clients that hold connections: nobody keeps one without asking, and nobody keeps the others out."""

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from nae.errors import ConfigError
from nae.serving import Limits
from nae.serving.protocol import Throttle
from tests.serving.test_live import wait_for

HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
QUICK = Limits(max_connections=8, head_seconds=0.3, body_seconds=0.6)
SCRIPT = """
import resource, sys
from nae.serving import Limits, Registry, run_server
if n_files := int(sys.argv[5]):
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files))
limits = Limits(max_connections=int(sys.argv[2]), head_seconds=float(sys.argv[3]), body_seconds=float(sys.argv[4]))
run_server(Registry.open(sys.argv[1]), limits, port=0, announce=lambda url: print(url, file=sys.stderr, flush=True))
"""


@contextmanager
def process(model: Path, log: Path, limits: Limits, *, n_files: int = 0) -> Iterator[int]:
    """Serve in a process of its own, which may have few files, and yield the port."""
    numbers = [str(limits.max_connections), str(limits.head_seconds), str(limits.body_seconds), str(n_files)]

    with log.open("wb") as out:
        command = [sys.executable, "-c", SCRIPT, str(model), *numbers]
        server = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_for(lambda: server.poll() is not None or "http://" in log.read_text())
        port = int(log.read_text().split("http://127.0.0.1:")[1].split()[0])
        wait_for(lambda: is_healthy(port))
        yield port
    finally:
        server.terminate()
        assert server.wait(timeout=30) == 0


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "log"


@pytest.fixture(scope="module")
def port(models: Path, log: Path) -> Iterator[int]:
    with process(models / "number.nae", log, QUICK) as found:
        yield found


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def is_healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False, timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def answer(wire: socket.socket) -> bytes:
    """Return all that is sent until the connection is closed."""
    return b"".join(iter(lambda: wire.recv(65536), b""))


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", b"The head of a request must arrive within 0.3 s."),
        (b"POST /pre", b"The head of a request must arrive within 0.3 s."),
        (HEAD, b"The head of a request must arrive within 0.3 s."),
        (HEAD + b"\r\n", b"The body of a request must arrive within 0.6 s."),
        (HEAD + b'\r\n{"rows":', b"The body of a request must arrive within 0.6 s."),
    ],
)
def test_a_request_that_does_not_arrive_in_time_is_ended(port: int, sent: bytes, words: bytes) -> None:
    with connect(port) as wire:
        wire.sendall(sent)
        found = answer(wire)
    assert found.startswith(b"HTTP/1.1 408 ")
    assert words in found


def test_bytes_that_trickle_in_do_not_move_the_deadline(port: int) -> None:
    with connect(port) as wire:
        started = time.monotonic()
        with pytest.raises(OSError, match=r"reset|Broken pipe"):  # noqa: PT012
            while time.monotonic() < started + 5:
                wire.sendall(b"X")
                time.sleep(0.05)
    assert time.monotonic() - started < 2


def test_a_connection_that_is_kept_alive_has_the_same_deadlines(port: int) -> None:
    with connect(port) as wire:
        for _ in range(3):
            wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.4)  # longer than a head may take, which has not begun
            assert wire.recv(65536).startswith(b"HTTP/1.1 200 ")
        wire.sendall(b"GET /heal")
        assert answer(wire).startswith(b"HTTP/1.1 408 ")


def test_connections_without_a_request_make_room_for_others(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(connect(port)).sendall(b"GET /heal")
            assert is_healthy(port)


def test_a_full_server_says_so(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(connect(port)).sendall(HEAD + b"\r\n{")
        time.sleep(0.1)
        found = answer(stack.enter_context(connect(port)))
        assert found.startswith(b"HTTP/1.1 503 ")
        assert b"The server has its 8 connections" in found
    wait_for(lambda: is_healthy(port))


@pytest.mark.parametrize(
    "sent",
    [HEAD + b"\r\n{", b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000],
    ids=["sending", "reading"],
)
def test_slow_clients_make_room_for_others_once_they_had_some_time(models: Path, tmp_path: Path, sent: bytes) -> None:
    limits = Limits(max_connections=4, head_seconds=0.3, body_seconds=600)
    with process(models / "number.nae", tmp_path / "log", limits) as port, ExitStack() as stack:
        for _ in range(4):
            wire = stack.enter_context(connect(port))
            wire.setblocking(False)
            with suppress(BlockingIOError):  # it reads no further, since nobody reads its answers
                wire.send(sent)
        wait_for(lambda: is_healthy(port))
        wait_for(lambda: is_healthy(port))  # the place of the slow one is free now


def test_clients_that_go_away_leave_no_traceback(port: int, log: Path) -> None:
    for sent in (b"", b"GET /heal", HEAD, HEAD + b'\r\n{"rows":', b"\x00\x01\r\n\r\n"):
        with connect(port) as wire:
            wire.sendall(sent)
            time.sleep(0.05)
    wait_for(lambda: is_healthy(port))
    assert "Traceback" not in log.read_text()


@pytest.mark.slow
def test_few_files_silence_neither_the_server_nor_its_log(models: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with process(models / "number.nae", log, Limits(head_seconds=30), n_files=256) as port, ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(connect(port)).sendall(b"GET /heal")
        assert is_healthy(port)
    assert log.stat().st_size < 50_000


def test_a_flood_of_lines_is_cut_and_says_so() -> None:
    throttle = Throttle(3)
    records = [logging.LogRecord("x", logging.WARNING, "", 0, "line %d", (i,), None) for i in range(10)]
    shown = [record.getMessage() for record in records if throttle.filter(record)]
    assert shown == ["line 0", "line 1", "line 2 (further lines of this minute are left out)"]


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"head_seconds must be above 0; got 0\."):
        Limits(head_seconds=0)
    with pytest.raises(ConfigError, match=r"max_connections must be at least 1; got 0\."):
        Limits(max_connections=0)
