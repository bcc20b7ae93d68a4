"""Seconds of the same fit with one thread and with several, on a generated table of Housing's size.

Run as a module on an otherwise idle machine; it needs no data and no other model::

    python -m benchmarks.threads --most 16
"""

import argparse
import os
import time

import numpy as np

import nae
from benchmarks.machine import describe
from benchmarks.tables import markdown_table

__all__ = ["main", "seconds"]

N_ROWS, N_FEATURES = 16_512, 8


def main() -> None:
    """Print a table: threads, seconds, and how many times as fast as one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--most", type=int, default=os.cpu_count() or 1, help="largest number of threads")
    parser.add_argument("--repeats", type=int, default=2, help="fits for each number; the fastest one counts")
    given = parser.parse_args()
    numbers = [n for n in (1, 2, 4, 8, 16, 32) if n <= given.most]
    found = {n: min(seconds(n) for _ in range(given.repeats)) for n in numbers}
    rows = [[str(n), f"{found[n]:.1f}", f"{found[1] / found[n]:.2f}"] for n in numbers]
    print(describe())
    print(markdown_table(["threads", "seconds", "times as fast"], rows))


def seconds(n_jobs: int) -> float:
    """Return how long a default fit takes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, N_FEATURES))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + X[:, 3] * X[:, 4] + 0.3 * random.normal(size=N_ROWS)
    begin = time.perf_counter()
    nae.NAERegressor(random_state=0, n_jobs=n_jobs, engine="native").fit(X, y)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
