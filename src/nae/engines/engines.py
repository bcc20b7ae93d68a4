"""The engines by name. Each is imported when it is used: torch takes seconds, and need not be there."""

from collections.abc import Callable

from nae._optional import require
from nae.engines.place import Place
from nae.training import Engine, Job

__all__ = ["ENGINES", "make_engine"]


def make_engine(place: Place, job: Job) -> Engine:
    """Return the engine of a place, at the start of a job."""
    return ENGINES[place.engine](job, place.device)


def _native(job: Job, device: str) -> Engine:
    from nae.engines.native import NativeEngine

    return NativeEngine(job)


def _torch(job: Job, device: str) -> Engine:
    require("torch", extra="gpu")
    from nae.engines.torch import TorchEngine

    return TorchEngine(job, device=device)


ENGINES: dict[str, Callable[[Job, str], Engine]] = {"native": _native, "torch": _torch}
