"""Progress bars: one for the epochs of a training, and one for passes over files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nae._optional import require
from nae.training.history import Epoch

__all__ = ["pass_bar", "progress_bar"]


@contextmanager
def progress_bar(n_epochs: int, *, is_shown: bool) -> Iterator[Callable[[Epoch], None]]:
    """Yield a function to call after each epoch; it does nothing unless ``is_shown``."""
    if not is_shown:
        yield lambda epoch: None
        return
    rich = require("rich.progress", extra="train")
    columns = (
        rich.TextColumn("[bold]epoch {task.completed:>3.0f}"),
        rich.BarColumn(bar_width=None),  # full at the most epochs there may be; whatever width the numbers leave
        rich.TextColumn("{task.fields[numbers]}"),
        rich.TimeElapsedColumn(),  # validation decides when it ends, so nobody knows the time left
    )
    with rich.Progress(*columns, expand=True) as bar:
        task = bar.add_task("fit", total=n_epochs, numbers="")
        latest: dict[str, str] = {}  # not every epoch looks at the validation rows

        def show(epoch: Epoch) -> None:
            latest["loss"] = f"{epoch.loss:.4f}"
            if epoch.validation is not None:
                latest["validation"] = f"{epoch.validation:.4f}"
            if epoch.additivity is not None:
                latest["additivity"] = f"{epoch.additivity:.2f}"
            numbers = "  ".join(f"{name} {number}" for name, number in latest.items())
            bar.update(task, completed=epoch.epoch, numbers=numbers)

        yield show


@contextmanager
def pass_bar(*, is_shown: bool) -> Iterator[Callable[[str, int, int | None], None] | None]:
    """Yield a function to call with the name of a pass, its rows so far, and all rows; None unless ``is_shown``."""
    if not is_shown:
        yield None
        return
    rich = require("rich.progress", extra="train")
    columns = (
        rich.TextColumn("[bold]{task.description}"),
        rich.BarColumn(bar_width=None),
        rich.TextColumn("{task.completed:,.0f} rows"),
        rich.TimeRemainingColumn(compact=True),
    )
    with rich.Progress(*columns, expand=True) as bar:
        task = bar.add_task("", total=None)

        def show(what: str, done: int, total: int | None) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield show
