"""How many threads work on chunks of rows.

Results come in the order of the chunks, so any number of threads gives the same sums.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["in_turn", "working_threads"]

Part = TypeVar("Part")
Result = TypeVar("Result")

_N_THREADS: ContextVar[int] = ContextVar("n_threads", default=1)


@contextmanager
def working_threads(n: int) -> Iterator[None]:
    """Let so many threads work on the chunks of rows of a block; outside of one, it is the caller alone."""
    token = _N_THREADS.set(n)
    try:
        yield
    finally:
        _N_THREADS.reset(token)


def in_turn(work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """Yield the result of every part, in order. Only a few parts are worked on ahead."""
    n = _N_THREADS.get()
    if n == 1:
        yield from map(work, parts)
        return
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n) as pool:
        for part in parts:
            ahead.append(pool.submit(work, part))
            if len(ahead) > 2 * n:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
