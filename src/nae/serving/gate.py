"""Check a request before the application sees it: its host name, its token, and that it states one length."""

import hmac
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from nae.errors import ConfigError
from nae.serving.answers import encode
from nae.serving.errors import RequestError

__all__ = ["Gate", "hosts_of", "is_loopback", "read_token"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_TOKEN = 4096  # bytes


def read_token(path: str | Path) -> str:
    """Return the token in a file."""
    try:
        with Path(path).open("rb") as file:
            token = file.read(_MOST_TOKEN + 1).strip()
    except OSError as error:
        raise ConfigError(f"The token cannot be read from {path}; {error.strerror or error}.") from error
    if not 16 <= len(token) <= _MOST_TOKEN or not all(33 <= byte <= 126 for byte in token):
        raise ConfigError(
            f"A token must have 16 to {_MOST_TOKEN} visible ASCII characters; {path} holds something else. "
            "openssl rand -hex 32 makes one."
        )
    return token.decode("ascii")


def hosts_of(host: str, more: Iterable[str] = ()) -> tuple[str, ...] | None:
    """Return the host names that a server accepts. None means any: it is open to others, and no name was given."""
    named = tuple(name.strip("[]").lower() for name in more)
    if not is_loopback(host):
        return named or None
    return tuple(dict.fromkeys((*_LOOPBACK, host.lower(), *named)))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Gate:
    """Middleware that refuses requests the application must not see."""

    def __init__(self, app: ASGIApp, *, token: str | None, hosts: Iterable[str] | None) -> None:
        self.app = app
        self._token = None if token is None else token.encode("ascii")
        self._hosts = None if hosts is None else frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self.app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        if refusal.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": encode(refusal.to_dict())})

    def _refusal(self, scope: Scope) -> RequestError | None:
        headers = dict(scope["headers"])
        if b"content-length" in headers and b"transfer-encoding" in headers:
            return RequestError(400, "A request must have Content-Length or Transfer-Encoding; this one has both.")
        name = _name(headers.get(b"host", b"").decode("latin-1"))
        if self._hosts is not None and name not in self._hosts:
            return RequestError(421, f"The server is not called {name[:60]!r}; --allow-host adds a name.")
        if self._token is not None and scope["path"] != "/healthz":
            kind, _, token = headers.get(b"authorization", b"").partition(b" ")
            if kind.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
                return RequestError(401, "A token must be sent: Authorization: Bearer TOKEN.")
        return None


def _name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
