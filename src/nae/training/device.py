"""The device to train on, the processor or a GPU if it is faster; and batches small enough for its memory."""

import gc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from nae.errors import ConfigError, NAEWarning, TrainingError
from nae.network import ENCODERS, NetworkConfig
from nae.network.gates import GATES
from nae.training.config import TrainingConfig

__all__ = ["Place", "choose_place", "estimate_work", "halve_batch_until_it_fits"]

# A GPU takes about three seconds to start and to capture its first step, and then half a millisecond a step. In a
# second, two cores do about 2.6e10 of the multiplications that are counted below (docs/scaling.md).
_WORTH_IT = 1e11
_FEWEST_ROWS = 16  # in a batch

Result = TypeVar("Result")


@dataclass(frozen=True)
class Place:
    """A device, and why it was chosen."""

    device: torch.device
    reason: str


def choose_place(device: str, *, work: float, is_double: bool = False) -> Place:
    """Return where to train.

    ``work`` counts the multiplications of the longest fit. In double precision (``is_double``), a GPU never pays.
    """
    if device not in ("auto", "cpu", "cuda") and not str(device).startswith("cuda:"):
        raise ConfigError(f"device must be 'auto', 'cpu' or 'cuda'; got {device!r}.")
    if str(device).startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device={device!r} needs a CUDA GPU, and torch sees none; use device='auto'.")
    if device != "auto":
        return Place(torch.device(device), "as asked for")
    if not torch.cuda.is_available():
        return Place(torch.device("cpu"), "torch sees no GPU")
    name = torch.cuda.get_device_name()
    if is_double or work < _WORTH_IT:
        return Place(torch.device("cpu"), f"so small a table trains faster here than on the {name}")
    return Place(torch.device("cuda"), f"the {name} is faster for a table of this size")


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
        except torch.OutOfMemoryError as error:
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
