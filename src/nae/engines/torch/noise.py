"""Random numbers of a step: the same ones on every device, and in the native core.

SplitMix64 (Steele, Lea and Flood, 2014) makes them by hashing a counter. The counter is a tensor: a step that was
captured on a GPU moves it on, too, and a training that was interrupted goes on with the same noise.
"""

import torch
from torch import Tensor

__all__ = ["gumbel_noise", "random_bytes"]


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


_STEP = _signed(0x9E3779B97F4A7C15)
_ROUNDS = ((30, _signed(0xBF58476D1CE4E5B9)), (27, _signed(0x94D049BB133111EB)))
_LAST_SHIFT = 31
_UNIFORM_BITS = 23  # single precision holds n + 1/2 for numbers n of 23 bits


def random_bytes(n: int, counter: Tensor) -> Tensor:
    """Return ``n`` random bytes and move the counter on by the number of 64-bit words they take."""
    return _random_words(-(-n // 8), counter).view(torch.uint8)[:n]


def gumbel_noise(shape: torch.Size, counter: Tensor, dtype: torch.dtype) -> Tensor:
    """Return Gumbel noise, ``-log(-log(u))`` with u uniform in (0, 1), and move the counter on."""
    n = shape.numel()
    numbers = _random_words(-(-n // 2), counter).view(torch.int32)[:n]
    numbers = (numbers >> (32 - _UNIFORM_BITS)).bitwise_and_(2**_UNIFORM_BITS - 1)
    uniform = numbers.to(dtype).add_(0.5).mul_(2**-_UNIFORM_BITS)
    return uniform.log_().neg_().log_().neg_().view(shape)


def _random_words(n_words: int, counter: Tensor) -> Tensor:
    words = torch.arange(n_words, device=counter.device).add_(counter).mul_(_STEP)
    counter += n_words
    for shift, factor in _ROUNDS:
        _fold(words, shift).mul_(factor)
    return _fold(words, _LAST_SHIFT)


def _fold(words: Tensor, n_bits: int) -> Tensor:
    """Replace each word by its exclusive or with itself, shifted right; zeros come in from the left."""
    return words.bitwise_xor_((words >> n_bits).bitwise_and_(2 ** (64 - n_bits) - 1))
