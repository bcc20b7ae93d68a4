"""Show training in a terminal: a bar with the elapsed time, and Ctrl-C that keeps the best model so far."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn

from nae.cli.console import say, screen

__all__ = ["Watch", "watch_training"]


class Watch:
    """A callback of the estimator. It shows every epoch, and asks to stop after Ctrl-C."""

    def __init__(self, bar: Progress, time_limit: float | None) -> None:
        self.is_interrupted = False
        self._bar, self._time_limit = bar, time_limit
        self._task = bar.add_task("fit", total=1.0, text="starting")

    def __call__(
        self,
        *,
        epoch: int,
        n_epochs: int,
        loss: float,
        validation: float | None,
        additivity: float | None,
        seconds: float,
    ) -> bool:
        left = self._seconds_left(epoch, n_epochs, seconds)
        words = [f"epoch {epoch}", f"loss {loss:.4f}"]
        if validation is not None:
            words.append(f"validation {validation:.4f}")
        if additivity is not None:
            words.append(f"additivity {additivity:.2f}")
        words.append(f"at most {int(left // 60)}:{int(left % 60):02d} left")
        self._bar.update(self._task, completed=seconds / max(seconds + left, 1e-9), text="  ".join(words))
        return self.is_interrupted

    def show_pass(self, what: str, done: int, total: int | None) -> None:
        """Show how many rows have been read."""
        share = f" of {total:,}" if total else ""
        completed = done / total if total else 0.0
        self._bar.update(self._task, completed=completed, text=f"{what}: {done:,}{share} rows")

    def _seconds_left(self, epoch: int, n_epochs: int, seconds: float) -> float:
        left = seconds / epoch * (n_epochs - epoch)
        return left if self._time_limit is None else max(0.0, min(left, self._time_limit - seconds))

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """Ask to stop at the first Ctrl-C. Stop at once at the second."""
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_interrupted = True
        say("stopping after this epoch and keeping the best model so far; Ctrl-C again quits at once.")


class _Teller(logging.Handler):
    """A log handler that prints the library's notes: which device trains, and why."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.getMessage()}.")


@contextmanager
def watch_training(time_limit: float | None, *, is_quiet: bool) -> Iterator[Watch]:
    """Yield a callback for the estimator. Within the block, Ctrl-C ends training instead of the process."""
    columns: tuple[Any, ...] = (BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=screen(), disable=is_quiet, transient=True) as bar:
        watch = Watch(bar, time_limit)
        before = signal.signal(signal.SIGINT, watch.interrupt)
        log, teller = logging.getLogger("nae"), _Teller()
        level = log.level
        if not is_quiet:
            say("training; Ctrl-C ends it and keeps the best model so far.")
            log.addHandler(teller)
            log.setLevel(logging.INFO)
        try:
            yield watch
        finally:
            signal.signal(signal.SIGINT, before)
            log.removeHandler(teller)
            log.setLevel(level)
