"""How many threads there are while a model is fitted.

Sums that threads share depend in their last bit on how many there are. Where numpy adds up rows, and where the start
of a small table is solved for, one thread works; the steps of either engine give the same bits with any number.
"""

import functools
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from numbers import Integral
from threading import Lock
from typing import Any

from nae._processes import count_processors, count_threads
from nae.errors import ConfigError

__all__ = ["one_blas_thread", "read_threads"]


def read_threads(n_jobs: Any) -> int:
    """Return the number of threads for ``n_jobs``; negative numbers count from the processors, as in joblib."""
    if n_jobs is None:
        return count_threads()
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ConfigError(f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}.")
    asked = int(n_jobs)
    return asked if asked > 0 else max(1, count_processors() + 1 + asked)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy's linear algebra have one thread for a block, and torch, where it is loaded, as many as before.

    The limit is that of the process. Of several fits at once, the first one sets it, and the last one takes it back.
    """
    _LIMIT.begin()
    try:
        yield
    finally:
        _LIMIT.end()


class _Limit:
    """The limit, and how many blocks it holds for."""

    def __init__(self) -> None:
        self.lock, self.n_blocks, self.before = Lock(), 0, ExitStack()

    def begin(self) -> None:
        with self.lock, ExitStack() as stack:
            if self.n_blocks == 0:
                if (torch := sys.modules.get("torch")) is not None:  # both may use one library
                    stack.callback(torch.set_num_threads, torch.get_num_threads())
                stack.enter_context(_libraries().limit(limits=1, user_api="blas"))
                self.before = stack.pop_all()
            self.n_blocks += 1

    def end(self) -> None:
        with self.lock:
            self.n_blocks -= 1
            if self.n_blocks == 0:
                self.before.close()


_LIMIT = _Limit()


@functools.cache
def _libraries() -> Any:
    """Return what controls the loaded libraries; to look for them takes a while."""
    import scipy.linalg  # noqa: F401  # brings a library of its own, which is to be found, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
