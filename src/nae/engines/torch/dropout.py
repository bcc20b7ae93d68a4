"""Which expert weights a step drops: the same ones on every device.

Random bytes come from SplitMix64 (Steele, Lea and Flood, 2014), which hashes a counter. The counter is a tensor: a step
that was captured on a GPU moves it on, too, and a training that was interrupted goes on with the same noise.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nae.training.dropout import CHANCES, count_kept

__all__ = ["Dropped", "drop"]


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


_STEP = _signed(0x9E3779B97F4A7C15)
_ROUNDS = ((30, _signed(0xBF58476D1CE4E5B9)), (27, _signed(0x94D049BB133111EB)))
_LAST_SHIFT = 31


@dataclass(frozen=True)
class Dropped:
    """The weights that a step keeps. They are scaled up by a factor, so that the mean stays what it was."""

    kept: Tensor  # (B, K, F, M), boolean
    factor: float

    def thin(self, routing: Tensor, rows: slice = slice(None)) -> Tensor:
        """Return the weights of some rows, with zeros in place of those that are dropped."""
        return routing * self.kept[rows].to(routing.dtype).mul_(self.factor)


def drop(shape: torch.Size, share: float, counter: Tensor) -> Dropped | None:
    """Draw which weights are dropped: ``share`` of them, rounded to a 256th. Return None if that is none of them."""
    n_kept = count_kept(share)
    if n_kept == CHANCES:
        return None
    return Dropped((_random_bytes(shape.numel(), counter) < n_kept).view(shape), CHANCES / n_kept)


def _random_bytes(n: int, counter: Tensor) -> Tensor:
    """Return ``n`` random bytes and move the counter on."""
    n_words = -(-n // 8)
    words = torch.arange(n_words, device=counter.device).add_(counter).mul_(_STEP)
    counter += n_words
    for shift, factor in _ROUNDS:
        _fold(words, shift).mul_(factor)
    return _fold(words, _LAST_SHIFT).view(torch.uint8)[:n]


def _fold(words: Tensor, n_bits: int) -> Tensor:
    """Replace each word by its exclusive or with itself, shifted right; zeros come in from the left."""
    return words.bitwise_xor_((words >> n_bits).bitwise_and_(2 ** (64 - n_bits) - 1))
