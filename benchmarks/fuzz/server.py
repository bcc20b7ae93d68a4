"""Requests to the server: unusual bodies for the application, and damaged bytes over the loopback."""

import asyncio
import json
import logging
import socket
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from benchmarks.fuzz.files import forge
from benchmarks.fuzz.models import small_models
from benchmarks.fuzz.targets import Attempt, Violation, draw, shown
from nae.encoding import Category
from nae.errors import FormatError
from nae.serving import Limits, Registry, make_app
from nae.serving.protocol import make_protocol
from nae.tables import TableModel
from nae.tables.archive import pack
from tests.tables.mutations import VALUES, break_bytes, splice

__all__ = ["prepare"]

_LIMITS = Limits(max_rows=20, max_explained_rows=10, max_body_bytes=60_000, head_seconds=0.5, body_seconds=0.5)
_STATUSES = {200, 400, 404, 405, 413, 415, 422}
_RAW_STATUSES = {*_STATUSES, 408, 503}
_PATHS = ("/predict", "/explain", "/schema", "/model")
_JSON = (b"content-type", b"application/json")
_HEADERS = (
    (b"content-type", b"text/plain"),
    (b"content-type", b"application/json; charset=\xff"),
    (b"content-encoding", b"gzip"),
    (b"content-length", b"99999999999999999999999"),
    (b"content-length", "²".encode("latin-1")),
    (b"host", b"\xff"),
    (b"x" * 3000, b"y"),
    (b"authorization", b"Bearer \xff"),
)
Answer = tuple[int, bytes]


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def __bytes__(self) -> bytes:
        """Return the bytes of the request."""
        path = self.path.encode("utf-8", "surrogatepass") + (b"?" + self.query if self.query else b"")
        lines = [self.method.encode() + b" " + path + b" HTTP/1.1", b"host: localhost"]
        lines += [name + b": " + value for name, value in self.headers]
        lines += [b"content-length: " + str(len(self.body)).encode(), b"connection: close", b"", self.body]
        return b"\r\n".join(lines)


def prepare(folder: Path, closing: ExitStack) -> Attempt:
    """Return the attempt: one in sixteen requests goes over the loopback, and one goes to a forged model."""
    logging.disable(logging.CRITICAL)
    closing.callback(logging.disable, logging.NOTSET)
    models = {f"m{i}": model for i, model in enumerate(small_models())}
    contents = [pack(model) for model in models.values()]
    (folder / "models").mkdir()
    for name, content in zip(models, contents, strict=True):
        (folder / "models" / f"{name}.nae").write_bytes(content)
    app = make_app(Registry.open(folder / "models"), _LIMITS, reload_seconds=None)
    loop, port = asyncio.new_event_loop(), _listen(app, closing)
    closing.callback(loop.close)

    def attempt(random: np.random.Generator) -> str:
        name = draw(list(models), random)
        request = _request(name, models[name], random)
        kind = random.integers(16)
        if kind == 0:
            return _attempt_raw(port, request, random)
        if kind == 1:
            content = forge(draw(contents, random), draw(contents, random), random)
            with shown(content, ending="nae"):
                return _attempt_forged(content, folder / "forged.nae", loop)
        with shown(bytes(request), ending="http"):
            status = _check(*loop.run_until_complete(_ask(app, request)), statuses=_STATUSES)
            _check(*loop.run_until_complete(_ask(app, _HEALTH)), statuses={200})
            return f"answered with {status}"

    return attempt


_HEALTH = _Request("GET", "/healthz", b"", (), b"")


async def _ask(app: Any, request: _Request) -> Answer:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "path": request.path,
        "raw_path": request.path.encode("utf-8", "surrogatepass"),
        "query_string": request.query,
        "headers": [*request.headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "root_path": "",
    }
    half = len(request.body) // 2
    parts = [(request.body[:half], True), (request.body[half:], False)]
    status, answer = 0, []

    async def receive() -> dict[str, Any]:
        if not parts:
            return {"type": "http.disconnect"}
        body, more = parts.pop(0)
        return {"type": "http.request", "body": body, "more_body": more}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            answer.append(message.get("body", b""))

    await app(scope, receive, send)
    return status, b"".join(answer)


def _check(status: int, answer: bytes, *, statuses: set[int]) -> int:
    """Check the status and the body of an answer, and return the status."""
    if status not in statuses:
        raise Violation(f"the answer is {status}: {answer[:200]!r}")

    def refuse(name: str) -> None:
        raise Violation(f"an answer holds {name}, which is no JSON")

    found = json.loads(answer, parse_constant=refuse)
    if not isinstance(found, dict) or (status >= 400 and not isinstance(found.get("error"), str)):
        raise Violation(f"an answer of {status} says no error: {answer[:200]!r}")
    return status


def _request(name: str, model: TableModel, random: np.random.Generator) -> _Request:
    rows = [_row(model, random) for _ in range(draw((1, 1, 1, 2, 5, 11, 21), random))]
    body: Any = {"rows": rows}
    if random.integers(8) == 0:
        body = draw((rows, {"rows": rows[0]}, {"rows": rows, "more": 1}, {}, None, [[[]]], {"rows": [rows]}), random)
    content = json.dumps(body).encode()
    if random.integers(3) == 0:
        content = draw((break_bytes, splice), random)(content or b"{", json.dumps(VALUES[20:30]).encode(), random)
    if random.integers(40) == 0:
        content *= int(random.integers(1, 2000))
    headers = [_JSON] if random.integers(12) else []
    if random.integers(12) == 0:
        headers.insert(int(random.integers(2)), draw(_HEADERS, random))
    base = (
        f"/models/{name}" if random.integers(12) else draw(("", "/models/none", "/models/\ud800", "//", "/x"), random)
    )
    query = draw((b"causes=2", b"causes=21", b"causes=%ff", b"causes=9" + b"9" * 5000, b"&&=", b"\xff"), random)
    return _Request(
        method=draw(("GET", "PUT", "DELETE", "OPTIONS", "BREW"), random) if random.integers(12) == 0 else "POST",
        path=base + (draw((*_PATHS, ""), random) if random.integers(12) == 0 else draw(_PATHS[:2], random)),
        query=query if random.integers(4) == 0 else b"",
        headers=tuple(headers),
        body=content[:100_000],
    )


def _row(model: TableModel, random: np.random.Generator) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for feature in model.schema.features:
        if isinstance(feature, Category):
            row[feature.name] = draw((*feature.levels, *feature.rare, "never seen", None), random)
        elif feature.is_boolean:
            row[feature.name] = draw((True, False, None), random)
        else:
            row[feature.name] = draw((*feature.knots.tolist(), 0, -1e308, 1.5, None), random)
    if random.integers(3) == 0:
        row[draw([*row, "more"], random)] = draw(VALUES, random)
    return row


def _attempt_forged(content: bytes, path: Path, loop: asyncio.AbstractEventLoop) -> str:
    """Serve a forged file, if it can be loaded, and request everything that is derived from it."""
    path.write_bytes(content)
    try:
        registry = Registry.open(path)
    except FormatError:
        return "forged, not served"
    app = make_app(registry, _LIMITS, reload_seconds=None)
    for method, where in (("GET", "/model"), ("GET", "/schema"), ("GET", "/openapi.json"), ("POST", "/explain")):
        request = _Request(method, where, b"", (_JSON,), b'{"rows": [{}]}')
        _check(*loop.run_until_complete(_ask(app, request)), statuses={200, 422} if method == "POST" else {200})
    return "forged, served"


def _listen(app: Any, closing: ExitStack) -> int:
    """Serve the application in a thread, and return its port."""
    config = uvicorn.Config(app, port=0, http=make_protocol(_LIMITS, 20), ws="none", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    closing.callback(thread.join, 30)
    closing.callback(setattr, server, "should_exit", True)
    while not server.started:
        time.sleep(0.01)
    port: int = server.servers[0].sockets[0].getsockname()[1]
    return port


def _attempt_raw(port: int, request: _Request, random: np.random.Generator) -> str:
    content = bytes(request)
    if random.integers(3):
        content = draw((break_bytes, splice), random)(content, content, random) or b"\n"
    with shown(content, ending="http"):
        answer = _send(port, content)
        head, _, body = answer.partition(b"\r\n\r\n")
        if answer:
            status = int(head.split()[1])
            if status not in _RAW_STATUSES:
                raise Violation(f"the answer over the wire is {status}: {body[:200]!r}")
        health = _send(port, bytes(_HEALTH))
        if not health.startswith(b"HTTP/1.1 200"):
            raise Violation(f"the server is ill afterwards: {health[:100]!r}")
    return "raw bytes, answered" if answer else "raw bytes, hung up"


def _send(port: int, content: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
        parts = []
        try:
            wire.sendall(content)
            while part := wire.recv(65536):
                parts.append(part)
        except (ConnectionResetError, BrokenPipeError):
            pass  # the request was refused before it was read completely
        return b"".join(parts)
