"""Extend uvicorn's protocol: a request must arrive in time, and a full server stays reachable."""

import asyncio
import json
import logging
import time
from typing import Any

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from nae.serving.errors import RequestError
from nae.serving.limits import Limits

__all__ = ["Throttle", "make_protocol"]

_PHRASES = {408: b"Request Timeout", 503: b"Service Unavailable"}


def make_protocol(limits: Limits, most: int) -> type[H11Protocol]:
    """Return the protocol of a server, with its limits on connections and times."""

    class Limited(_Guarded):
        def __init__(
            self,
            config: Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(config, server_state, app_state, _loop)
            self.limits, self.most = limits, most

    return Limited


class _Guarded(H11Protocol):
    limits: Limits
    most: int
    _awaited: tuple[str, object] | None = None
    _deadline: asyncio.TimerHandle | None = None
    _write_deadline: asyncio.TimerHandle | None = None
    _is_paused = False
    waits_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most and not self._make_room():
            self._refuse(503, f"The server has its {self.most} connections; try again.")
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._end()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop(self._deadline)
        self._stop(self._write_deadline)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._is_paused, self.waits_since = True, time.monotonic()
        self._end()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_paused = False
        if not self.transport.is_closing():  # a connection that is closing already has its deadline
            self._stop(self._write_deadline)

    @property
    def stage(self) -> str | None:
        """Return what the client must send next; None while the client waits for the server."""
        if self.transport.is_closing():
            return None
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        return "head" if self.conn.their_state is h11.IDLE else None

    def _watch(self) -> None:
        """Set the deadline for the awaited part, once: bytes that trickle in do not extend it."""
        stage = self.stage
        if stage == "head" and self.timeout_keep_alive_task is not None:
            stage = "next"  # uvicorn's own timeout ends idle connections
        awaited = None if stage is None else (stage, self.cycle)
        if awaited == self._awaited:
            return
        self._awaited, self.waits_since = awaited, time.monotonic()
        self._stop(self._deadline)
        if stage in ("head", "body"):
            seconds = self.limits.head_seconds if stage == "head" else self.limits.body_seconds
            self._deadline = self.loop.call_later(seconds, self._give_up, stage, seconds)

    def _give_up(self, stage: str, seconds: float) -> None:
        self._refuse(408, f"The {stage} of a request must arrive within {seconds:g} s.")

    @property
    def is_slow(self) -> bool:
        """Return whether sending a body, or reading an answer, has taken longer than a head may take."""
        is_its_turn = self.stage == "body" or self._is_paused
        return is_its_turn and time.monotonic() - self.waits_since > self.limits.head_seconds

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for a head, or else a slow one; return whether there is room."""
        others = [one for one in self.connections if isinstance(one, _Guarded) and one is not self]
        chosen = [one for one in others if one.stage == "head"] or [one for one in others if one.is_slow]
        if chosen:
            min(chosen, key=lambda one: one.waits_since).transport.abort()
        return bool(chosen) or sum(not one.transport.is_closing() for one in others) < self.most

    def _refuse(self, status: int, message: str) -> None:
        """Send an answer, if none was sent yet, and close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps(RequestError(status, message).to_dict()).encode()
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ]
            for event in (
                h11.Response(status_code=status, headers=headers, reason=_PHRASES[status]),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._end()

    def _end(self) -> None:
        """Close the connection if the client does not read the answer in time."""
        self._stop(self._write_deadline)
        self._write_deadline = self.loop.call_later(self.limits.body_seconds, self.transport.abort)

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


class Throttle(logging.Filter):
    """A log filter that passes a limited number of lines per minute, and says once that further lines are left out."""

    def __init__(self, most: int = 20) -> None:
        super().__init__()
        self._most, self._began, self._n = most, float("-inf"), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is passed."""
        now = time.monotonic()
        if now - self._began > 60:
            self._began, self._n = now, 0
        self._n += 1
        if self._n == self._most:
            record.msg, record.args = f"{record.getMessage()} (further lines of this minute are left out)", ()
        return self._n <= self._most
