"""The application: routes, limits and errors. Each model's own reader reads the bodies, not the framework."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nae import __version__
from nae.errors import NAEError, did_you_mean
from nae.monitoring import Drift
from nae.serving.answers import encode
from nae.serving.counters import Counters
from nae.serving.errors import RequestError
from nae.serving.gate import Gate
from nae.serving.limits import Limits
from nae.serving.openapi import make_document
from nae.serving.registry import Registry, ServedModel
from nae.serving.responder import Responder, make_responder
from nae.serving.watch import drift_lines

__all__ = ["make_app"]

_LOGGER = logging.getLogger("nae.serving")
_SMALL_BODY = 20_000  # bytes; a thread would cost more than the work on smaller bodies
_LARGE_AT_ONCE = 2  # larger bodies at a time; more of them would delay the small ones, which share the interpreter

Work = Callable[[bytes], tuple[bytes, int]]


def make_app(
    registry: Registry,
    limits: Limits | None = None,
    *,
    reload_seconds: float | None = 1.0,
    token: str | None = None,
    hosts: Iterable[str] | None = None,
    watches_drift: bool = False,
) -> FastAPI:
    """Return the application that serves the models of a registry.

    Parameters
    ----------
    registry
        The models.
    limits
        Limits of one request.
    reload_seconds
        How often to look for changed files. If None, never.
    token
        The bearer token that requests must send, except to /healthz. If None, no token is required.
    hosts
        The host names and addresses that requests may use. If None, any.
    watches_drift
        Whether /metrics compares the rows that were asked for a prediction with the training rows of their model.
    """
    state = _AppState(
        registry,
        limits or Limits(),
        asks_token=token is not None,
        checks_host=hosts is not None,
        watches_drift=watches_drift,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()
        watcher = threading.Thread(target=state.watch, args=(stop, reload_seconds), name="nae-reload", daemon=True)
        if reload_seconds is not None:
            watcher.start()
        try:
            yield
        finally:
            stop.set()

    app = FastAPI(title="Neural additive experts", version=__version__, lifespan=lifespan, redoc_url=None)
    _add_routes(app, state)
    app.add_exception_handler(RequestError, _answer_request_error)
    app.add_exception_handler(RequestValidationError, _answer_parameter_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_middleware(Gate, token=token, hosts=hosts)
    app.add_middleware(_Counting, counters=state.counters)
    # The document depends on the models, which may change while the server runs.
    app.openapi = state.document  # type: ignore[method-assign]
    return app


class _AppState:
    """The state that the routes share: the models, their responders, limits and counters."""

    def __init__(
        self, registry: Registry, limits: Limits, *, asks_token: bool, checks_host: bool, watches_drift: bool
    ) -> None:
        self._asks_token, self._checks_host = asks_token, checks_host
        self.watches_drift = watches_drift
        self.registry, self.limits, self.counters = registry, limits, Counters()
        self._responders = {name: self._responder(served) for name, served in registry.models.items()}
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)

    def watch(self, stop: threading.Event, seconds: float) -> None:
        """Look for changed files until the server stops."""
        while not stop.wait(seconds):
            try:
                if self.registry.refresh():
                    self.prepare()
            except Exception:
                self.registry.n_failures += 1
                _LOGGER.exception("looking for changed files failed; the models in service are kept")

    def prepare(self) -> None:
        """Prepare the models in service; responders of unchanged models are kept."""
        ready = {}
        for name, served in self.registry.models.items():
            before = self._responders.get(name)
            if before is not None and before.served is served:
                ready[name] = before
                continue
            try:
                ready[name] = self._responder(served)
            except Exception:
                _LOGGER.exception("%s cannot be served", name)
                self.registry.n_failures += 1
                if before is not None:
                    ready[name] = before
        self._responders = ready  # replaced, never changed: a request sees the old or the new mapping

    def _responder(self, served: ServedModel) -> Responder:
        return make_responder(served, self.limits, watches_drift=self.watches_drift)

    def drift(self) -> dict[str, Drift]:
        """Return the drift of the rows that each watched model was asked about."""
        watched = {name: one.watch.drift() for name, one in self._responders.items() if one.watch is not None}
        return {name: found for name, found in watched.items() if found is not None}

    def find(self, name: str | None) -> Responder:
        """Return the responder of the named model, or the only responder."""
        services = self._responders
        if name is None:
            if len(services) == 1:
                return next(iter(services.values()))
            if not services:
                raise RequestError(404, "No model is in service.")
            raise RequestError(404, f"Several models are served; ask /models/NAME/… with one of {sorted(services)}.")
        if name not in services:
            raise RequestError(404, f"No model is called {name[:60]!r}.{did_you_mean(name[:60], services)}")
        return services[name]

    def document(self) -> dict[str, Any]:
        """Return the OpenAPI document of the models that are in service now."""
        served = [responder.served for responder in self._responders.values()]
        return make_document(served, self.limits, asks_token=self._asks_token, checks_host=self._checks_host)

    async def answer(self, request: Request, responder: Responder, label: str, work: Work) -> Response:
        """Read a body within the limits, and answer it."""
        body = await self._read_body(request)
        try:
            if len(body) <= _SMALL_BODY:
                content, n_rows = work(body)
            else:
                async with self._large:
                    content, n_rows = await run_in_threadpool(work, body)
        except NAEError as error:
            raise RequestError(422, str(error)) from error
        self.counters.count_rows(responder.served.name, label, n_rows)
        return _json(content)

    async def _read_body(self, request: Request) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RequestError(415, f"The content type must be application/json; got {kind[:60]!r}.")
        if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise RequestError(415, "The body must not be compressed.")
        most = self.limits.max_body_bytes
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > most:
            raise RequestError(413, f"The body must have at most {most} bytes; {announced[:20]} are announced.")
        parts, size = [], 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise RequestError(413, f"The body must have at most {most} bytes; this one has more.")
                parts.append(part)
        except ClientDisconnect as error:
            raise RequestError(499, "The client went away before its request was whole.") from error
        return b"".join(parts)


@dataclass(frozen=True)
class _Asked:
    """What an explanation is asked for."""

    unit: str = "score"
    reasons: Annotated[int | None, Query(ge=1, le=100)] = None
    toward: str | None = None
    reference: str = "mean"


@dataclass(frozen=True)
class _Coverage:
    """The coverage of the intervals or sets that come with predictions."""

    interval: float | None = None
    set: float | None = None


def _add_routes(app: FastAPI, state: _AppState) -> None:
    registry = state.registry

    @app.get("/healthz")
    async def health() -> Response:
        return _json(encode({"status": "ok", "models": list(registry.names)}))

    @app.get("/metrics")
    async def metrics() -> Response:
        text = state.counters.render(
            n_models=len(registry.models),
            n_reloads=registry.n_reloads,
            n_failures=registry.n_failures,
            more=drift_lines(await run_in_threadpool(state.drift)) if state.watches_drift else (),
        )
        return Response(text, media_type="text/plain; version=0.0.4")

    @app.get("/models")
    async def models() -> Response:
        rows = [
            {"name": one.name, "version": one.version, "sentence": one.card.sentence}
            for one in registry.models.values()
        ]
        return _json(encode({"models": rows}))

    async def predict(request: Request, asked: Annotated[_Coverage, Depends()]) -> Response:
        responder = state.find(request.path_params.get("name"))
        coverage = {"interval": asked.interval, "classes": asked.set}
        return await state.answer(request, responder, "predict", lambda body: responder.predict(body, **coverage))

    async def explain(
        request: Request, asked: Annotated[_Asked, Depends()], causes: Annotated[int, Query(ge=1, le=20)] = 3
    ) -> Response:
        responder = state.find(request.path_params.get("name"))
        if asked.reasons is not None:
            words = {"k": asked.reasons, "reference": asked.reference, "unit": asked.unit}
            return await state.answer(
                request, responder, "explain", lambda body: responder.reasons(body, toward=asked.toward, **words)
            )
        return await state.answer(
            request, responder, "explain", lambda body: responder.explain(body, n_causes=causes, unit=asked.unit)
        )

    async def schema(request: Request) -> Response:
        return _json(state.find(request.path_params.get("name")).schema)

    async def model(request: Request) -> Response:
        return _json(state.find(request.path_params.get("name")).card)

    for base in ("", "/models/{name}"):
        app.add_api_route(f"{base}/predict", predict, methods=["POST"])
        app.add_api_route(f"{base}/explain", explain, methods=["POST"])
        app.add_api_route(f"{base}/schema", schema, methods=["GET"])
        app.add_api_route(f"{base}/model", model, methods=["GET"])


class _Counting:
    """Middleware that counts requests and their time, whether they succeed or fail."""

    def __init__(self, app: ASGIApp, counters: Counters) -> None:
        self.app, self.counters = app, counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = 500, time.perf_counter()

        async def remember(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.counters.in_flight += 1
        try:
            await self.app(scope, receive, remember)
        finally:
            self.counters.in_flight -= 1
            # The label is the pattern of the route and not the path, because clients could invent any number of paths.
            path = getattr(scope.get("route"), "path", "other")
            self.counters.count_request(path, _method(scope), status, time.perf_counter() - started)


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS") else "other"


def _json(content: bytes, status: int = 200, headers: Any = None) -> Response:
    return Response(content, status, headers=headers, media_type="application/json")


async def _answer_request_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestError):
        raise TypeError(f"Expected a RequestError; got {type(error).__name__}.")
    return _json(encode(error.to_dict()), error.status)


async def _answer_parameter_error(_: Request, error: Exception) -> Response:
    found = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": ("",), "msg": str(error)}
    field = str(found["loc"][-1])
    return _json(encode(RequestError(422, f"Parameter {field!r}: {found['msg']}.", field=field).to_dict()), 422)


async def _answer_http_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise TypeError(f"Expected an HTTPException; got {type(error).__name__}.")
    return _json(
        encode(RequestError(error.status_code, f"{error.detail}.").to_dict()), error.status_code, error.headers
    )
