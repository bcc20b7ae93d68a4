"""How many threads the libraries below have while a model is fitted.

Sums that threads share depend in their last bit on how many there are. Where numpy adds up rows, and where the start
of a small table is solved for, one thread works; torch's steps give the same bits with any number.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

__all__ = ["one_blas_thread", "torch_threads"]


@contextmanager
def torch_threads(n: int) -> Iterator[None]:
    """Let torch have this many threads for a block."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n)
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy's linear algebra have one thread for a block, and torch as many as before."""
    before = torch.get_num_threads()
    with threadpool_limits(1, user_api="blas"):
        yield
    torch.set_num_threads(before)  # where both use one library
