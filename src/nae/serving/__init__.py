"""Serve saved models over HTTP: predictions, explanations, and an OpenAPI document with a type for every feature."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nae._optional import require

_WHERE = {
    "Limits": "nae.serving.limits",
    "Registry": "nae.serving.registry",
    "make_app": "nae.serving.app",
    "run_server": "nae.serving.process",
}

__all__ = ["Limits", "Registry", "make_app", "run_server"]

if TYPE_CHECKING:
    from nae.serving.app import make_app as make_app
    from nae.serving.limits import Limits as Limits
    from nae.serving.process import run_server as run_server
    from nae.serving.registry import Registry as Registry


def __getattr__(name: str) -> Any:
    # Imported lazily, because the card of a model needs no server.
    if name not in _WHERE:
        raise AttributeError(f"module 'nae.serving' has no attribute {name!r}")
    for package in ("fastapi", "uvicorn"):
        require(package, extra="serve")
    return getattr(import_module(_WHERE[name]), name)
