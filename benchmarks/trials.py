"""Trials that are fitted once. Their results are stored in a file with one line of JSON each."""

import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

__all__ = ["Result", "Trial", "fit_new"]

Trial = TypeVar("Trial")


@dataclass(frozen=True)
class Result(Generic[Trial]):
    """The result of a fit: its error on test rows."""

    trial: Trial
    error: float
    seconds: float

    def dumps(self) -> str:
        """Return the result as a line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @staticmethod
    def loads(line: str, kind: Callable[..., Trial]) -> "Result[Trial]":
        """Return the result in a line of JSON, for a trial of the given type."""
        found: dict[str, Any] = json.loads(line)
        return Result(kind(**found["trial"]), found["error"], found["seconds"])


def fit_new(
    asked: Sequence[Trial],
    fit: Callable[[Trial], Result[Trial]],
    *,
    kind: Callable[..., Trial],
    store: Path,
    workers: int,
    show: Callable[[Result[Trial]], str],
) -> dict[Trial, Result[Trial]]:
    """Return the results in the file and those of new trials, which are added to the file one by one."""
    known = _read(store, kind)
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("a") as file:
        for result in _fit_all([trial for trial in asked if trial not in known], fit, workers):
            known[result.trial] = result
            file.write(result.dumps())
            file.flush()
            print(show(result), flush=True)
    return known


def _fit_all(trials: list[Trial], fit: Callable[[Trial], Result[Trial]], n_workers: int) -> Iterator[Result[Trial]]:
    if n_workers == 1:
        yield from map(fit, trials)
        return
    with ProcessPoolExecutor(n_workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(fit, trials)


def _read(path: Path, kind: Callable[..., Trial]) -> dict[Trial, Result[Trial]]:
    if not path.exists():
        return {}
    results = [Result.loads(line, kind) for line in path.read_text().splitlines() if line]
    return {result.trial: result for result in results}
