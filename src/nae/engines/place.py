"""Where a training takes place: which engine takes the steps, on the processor or on a GPU; and batches that fit."""

import ctypes
import functools
import gc
import importlib.util
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from nae._optional import require
from nae.engines.native.inputs import why_not
from nae.errors import ConfigError, MissingDependencyError, NAEWarning, TrainingError
from nae.network import ENCODERS, GATES, NetworkConfig
from nae.training import TrainingConfig
from nae.training.losses import Loss
from nae.training.workers import ALONE, Workers

__all__ = ["Place", "choose_place", "estimate_work", "halve_batch_until_it_fits"]

# A GPU takes about six seconds to import torch, to start and to capture its first step, and then half a millisecond a
# step. In a second, two cores do about 1.3e11 of the multiplications that are counted below, by the native core.
_WORTH_IT = 8e11
_FEWEST_ROWS = 16  # in a batch
_DRIVERS = ("libcuda.so.1", "nvcuda.dll", "libamdhip64.so")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Place:
    """An engine and a device, and why they were chosen."""

    engine: str
    device: str
    reason: str


def choose_place(
    engine: str,
    device: str,
    *,
    network: NetworkConfig,
    loss: Loss,
    workers: Workers = ALONE,
    work: float = 0.0,
    is_double: bool = False,
) -> Place:
    """Return where to train.

    ``work`` counts the multiplications of the longest fit. In double precision (``is_double``), a GPU never pays.
    """
    missing = why_not(network, loss, workers)
    if engine == "native" and missing:
        raise ConfigError(f"engine='native' cannot train this: {missing}. Use engine='auto'.")
    if engine == "native" and device not in ("auto", "cpu"):
        raise ConfigError(f"engine='native' trains on the processor; got device={device!r}. Use device='cpu'.")
    gpu = "" if engine == "native" else _find_gpu(device, work=work, is_double=is_double)
    if gpu:
        return Place("torch", "cuda" if device == "auto" else device, gpu)
    if engine == "torch":
        return Place("torch", "cpu", "as asked for")
    if not missing:
        return Place("native", "cpu", f"the native core is the fastest on a processor{_no_gpu(device)}")
    if importlib.util.find_spec("torch") is None:
        raise MissingDependencyError(
            f"Training needs the native core or torch; {missing}, and torch is not installed. "
            "pip install 'neural-additive-experts[gpu]' brings torch."
        )
    return Place("torch", "cpu", missing)


def _find_gpu(device: str, *, work: float, is_double: bool) -> str:
    """Return why to train on a GPU; an empty text if not."""
    if device not in ("auto", "cpu", "cuda") and not str(device).startswith("cuda:"):
        raise ConfigError(f"device must be 'auto', 'cpu' or 'cuda'; got {device!r}.")
    if device == "cpu":
        return ""
    if device == "auto":
        if is_double or work < _WORTH_IT or not _may_have_gpu():
            return ""
        torch = require("torch", extra="gpu")
        found = torch.cuda.is_available()
        return f"the {torch.cuda.get_device_name()} is faster for a table of this size" if found else ""
    if not require("torch", extra="gpu").cuda.is_available():
        raise ConfigError(f"device={device!r} needs a CUDA GPU, and torch sees none; use device='auto'.")
    return "as asked for"


def _no_gpu(device: str) -> str:
    return "" if device == "cpu" else ", and no GPU is there that pays for a table of this size"


@functools.cache
def _may_have_gpu() -> bool:
    """Return whether torch may find a GPU. To ask torch itself takes seconds where it is not loaded yet."""
    if "torch" in sys.modules:
        return sys.modules["torch"] is not None
    if importlib.util.find_spec("torch") is None:
        return False
    for name in _DRIVERS:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


def estimate_work(
    network: NetworkConfig, training: TrainingConfig, *, shape: tuple[int, int, int], n_rows: int
) -> float:
    """Return the multiplications of the longest fit: in each step blocks, experts and gate, then the rows.

    ``shape`` is that of the network's inputs: (feature, slot, width).
    """
    n_features, n_slots, n_inputs = shape
    n_evaluated = ENCODERS[network.encoder].count_evaluated(n_slots=n_slots, batch_size=training.batch_size)
    width = network.n_experts + GATES[network.gate].work(network.n_experts, network.gate_rank)
    block = n_inputs * network.hidden_dim + network.hidden_dim * (network.hidden_dim + width)
    batch = min(training.batch_size, n_rows)
    n_steps = training.max_epochs * max(1, round(n_rows / training.batch_size))
    return 3.0 * n_steps * network.n_members * (n_features * n_evaluated * block + batch * width * 4)


def halve_batch_until_it_fits(
    attempt: Callable[[TrainingConfig], Result], config: TrainingConfig, *, n_rows: int
) -> Result:
    """Return what ``attempt`` makes of the settings. On out-of-memory, halve the batch size and start again."""
    while True:
        try:
            return attempt(config)
        except RuntimeError as error:
            torch = sys.modules.get("torch")
            if torch is None or not isinstance(error, torch.OutOfMemoryError):
                raise
            before, reason = min(config.batch_size, n_rows), str(error).splitlines()[0]
        smaller = before // 2
        if smaller < _FEWEST_ROWS:
            raise TrainingError(
                f"The device's memory is too small even for batches of {before} rows ({reason}). "
                "Lower n_members, n_experts or n_knots, or use device='cpu'."
            )
        warnings.warn(
            f"Batches of {before:,} rows do not fit into the device's memory; training begins again with {smaller:,}.",
            NAEWarning,
            stacklevel=2,
        )
        config = replace(config, batch_size=smaller)
        gc.collect()  # what the failed attempt held
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
