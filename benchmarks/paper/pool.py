"""Run many runs in parallel: worker processes take one run at a time, until the time is over.

A worker is reused as long as its runs succeed, because starting Python, torch and a GPU takes seconds. If a worker dies
or takes too long, its run has failed, and a new worker starts. Every finished run is on disk before the next one.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.paper.runs import Run, is_ours
from benchmarks.paper.store import Report, RunStore

__all__ = ["Limits", "carry_out_all", "carry_out_here"]


@dataclass(frozen=True)
class Limits:
    """The time limits, in seconds."""

    budget: float = float("inf")
    """The time after which no run starts."""
    grace: float = 30.0
    """The additional time after which running runs are given up."""
    run: float = 1800.0
    """The time after which a single run has failed."""


def carry_out_all(
    runs: Iterable[Run], store: RunStore, *, device: str, n_workers: int, limits: Limits | None = None
) -> None:
    """Carry out runs in their order. Timed runs come last, one by one."""
    chosen, limits = list(runs), limits or Limits()
    end = time.monotonic() + limits.budget
    shared, alone = [run for run in chosen if not run.is_timed], [run for run in chosen if run.is_timed]
    for part, width in ((shared, n_workers), (alone, 1)):
        queue = _Queue(part)
        workers = [
            threading.Thread(target=_serve, args=(queue, store, device, end, limits))
            for _ in range(min(width, len(part)))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def carry_out_here(runs: Iterable[Run], store: RunStore, *, device: str) -> None:
    """Carry out runs one after another in this process."""
    for run in runs:
        _carry_out(run, store, device, threads=1)


def main() -> None:
    """Serve as a worker: read the folder of a run per line, carry it out, and answer with a line."""
    import json

    # The output of libraries must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    store, device = RunStore(Path(sys.argv[1])), sys.argv[2]
    for line in sys.stdin:
        run = Run.from_dict(json.loads((Path(line.strip()) / "run.json").read_text()))
        report = _carry_out(run, store, device, threads=_threads(run))
        answers.write(f"{_line(report)}\n")
        answers.flush()


def _threads(run: Run) -> int:
    """Return the number of threads of a run: two for peers, or one if its processor time is measured."""
    return 1 if is_ours(run) or run.is_timed else 2


def _carry_out(run: Run, store: RunStore, device: str, *, threads: int) -> Report:
    from benchmarks.paper.fitting import carry_out

    store.begin(run)
    try:
        report, explanation = carry_out(run, device=device, threads=threads)
    except Exception as error:  # a failed run is reported in the table, and the next one starts
        if run.is_smoke:
            raise
        report, explanation = Report(run, is_done=False, reason=f"{type(error).__name__}: {error}"[:300]), None
    store.finish(report, explanation)
    return report


@dataclass
class _Queue:
    runs: Sequence[Run]
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Run | None:
        with self._lock:
            self._next += 1
            return self.runs[self._next - 1] if self._next <= len(self.runs) else None


class _Worker:
    """A process that carries out runs."""

    def __init__(self, store: RunStore, device: str) -> None:
        command = [sys.executable, "-m", "benchmarks.paper.pool", str(store.root), device]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | threads
        )

    def carry_out(self, folder: Path, seconds: float) -> str | None:
        """Return the answer, or None if the process died or was ended at its time limit."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("A worker has pipes; this one has none.")
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(f"{folder}\n")
            self.process.stdin.flush()
            return self.process.stdout.readline().strip() or None
        except BrokenPipeError:
            return None
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # the last request may not have been read
                    pipe.close()


def _serve(queue: _Queue, store: RunStore, device: str, end: float, limits: Limits) -> None:
    worker: _Worker | None = None
    while time.monotonic() < end and (run := queue.take()) is not None:
        worker = worker or _Worker(store, device)
        folder = store.begin(run)
        started = time.monotonic()
        left = min(limits.run, end + limits.grace - started)
        answer = worker.carry_out(folder, left)
        if answer is None:
            worker.close()
            worker = None
            late = time.monotonic() - started >= left
            reason = f"was given up after {left:.0f} s" if late else "its process died"
            answer = _line(Report(run, is_done=False, reason=reason))
            store.finish(Report(run, is_done=False, reason=reason))
        print(f"{answer}  [{time.monotonic() - started:.0f} s]", flush=True)
    if worker is not None:
        worker.close()


def _line(report: Report) -> str:
    if not report.is_done:
        return f"{report.run.path}  failed: {' '.join(report.reason.split())}"
    numbers = {"rmse": report.rmse, "auc": report.auc, "additivity": report.additivity, "seconds": report.fit_seconds}
    return "  ".join(
        [report.run.path, *(f"{name} {value:.4g}" for name, value in numbers.items() if value is not None)]
    )


if __name__ == "__main__":
    main()
