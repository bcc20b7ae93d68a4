"""Where words go: results to stdout, everything about them to stderr."""

import sys

from rich.console import Console
from rich.table import Table

__all__ = ["digits", "make_table", "out", "say", "screen"]

_WIDTH = 120  # of a file or a pipe


def out() -> Console:
    """Return the console of results."""
    return _console(is_error=False)


def screen() -> Console:
    """Return the console of remarks and progress."""
    return _console(is_error=True)


def say(text: str, *, style: str | None = None) -> None:
    """Write a remark, unwrapped."""
    screen().print(text, style=style, soft_wrap=True)


def make_table(title: str, *headers: str) -> Table:
    """Return an empty table; all columns but the first are numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for i, header in enumerate(headers):
        table.add_column(header, justify="left" if i == 0 else "right", overflow="fold")
    return table


def digits(value: float, n: int = 4, *, signed: bool = False) -> str:
    """Return a number in ``n`` digits, zeros included, and a large one to the unit: 4.000, 0.01230, 26595."""
    sign = "+" if signed else ""
    if 10 ** (n - 1) <= abs(value) < 1e15:
        return f"{value:{sign}.0f}"
    return f"{value:{sign}#.{n}g}".rstrip(".")


def _console(*, is_error: bool) -> Console:
    stream = sys.stderr if is_error else sys.stdout
    # Names and levels are data: nothing in them is markup, and nothing in them is an emoji's name.
    return Console(
        stderr=is_error, markup=False, emoji=False, highlight=False, width=None if stream.isatty() else _WIDTH
    )
