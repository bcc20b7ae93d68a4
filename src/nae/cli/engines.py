"""What trains on this machine: the native core, torch and GPUs, and which of them ``engine='auto'`` takes."""

import importlib.util
from dataclasses import dataclass
from importlib.metadata import version

from nae._optional import require
from nae._processes import count_threads
from nae.native import best_instructions, reason

__all__ = ["EngineFacts", "engine_facts"]

_PIP = "pip install 'neural-additive-experts[{}]'"


@dataclass(frozen=True)
class EngineFacts:
    """A sentence about every engine."""

    native: str
    torch: str
    gpu: str
    auto: str


def engine_facts() -> EngineFacts:
    """Return what is here; this imports torch where it is installed."""
    has_torch = _is_installed("torch")
    gpus = _gpus() if has_torch else []
    return EngineFacts(
        native=_native_sentence(),
        torch=f"torch {version('torch')} is installed."
        if has_torch
        else f"torch is not installed; only GPUs and encoder='mlp' need it: {_PIP.format('gpu')}",
        gpu=f"GPU: {', '.join(gpus)}."
        if gpus
        else f"No GPU is used: torch {'finds none' if has_torch else 'is missing'}.",
        auto=_auto_sentence(has_core=not reason(), has_torch=has_torch, has_gpu=bool(gpus)),
    )


def _native_sentence() -> str:
    if missing := reason():
        return f"{missing[0].upper()}{missing[1:]}."
    n_threads = count_threads()
    threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
    return f"The native core is built; it uses {best_instructions()} instructions and {threads}."


def _auto_sentence(*, has_core: bool, has_torch: bool, has_gpu: bool) -> str:
    if not _is_installed("sklearn"):
        return f"Models predict and explain here, but nothing trains without scikit-learn: {_PIP.format('train')}"
    if not has_core and not has_torch:
        return "Models predict and explain here, but nothing trains: the native core and torch are both missing."
    others = "the native core" if has_core else "torch on the processor"
    if has_gpu:
        return f"engine='auto' takes torch on the GPU for large tables, and {others} for all others."
    if has_core:
        return "engine='auto' takes the native core, because it is the fastest on a processor."
    return "engine='auto' takes torch, because the native core is missing."


def _gpus() -> list[str]:
    torch = require("torch", extra="gpu")
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [torch.cuda.get_device_name(device) for device in range(n_devices)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # sys.modules holds None in its place
        return False
