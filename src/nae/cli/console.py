"""The two consoles: results go to stdout, remarks and progress to stderr."""

import re
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["digits", "make_table", "out", "say", "screen", "visible"]

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # and reversed text
_WIDTH = 120  # of output to a file or a pipe


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
    """Return a number with ``n`` digits, zeros included; large numbers are rounded to units: 4.000, 0.01230, 26595."""
    sign = "+" if signed else ""
    if 10 ** (n - 1) <= abs(value) < 1e15:
        return f"{value:{sign}.0f}"
    return f"{value:{sign}#.{n}g}".rstrip(".")


def visible(text: str) -> str:
    """Return text with its control characters escaped, so that text from a file cannot steer the terminal."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _Console(Console):
    """A console that prints all text literally, without markup."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


def _console(*, is_error: bool) -> Console:
    stream = sys.stderr if is_error else sys.stdout
    # Names and levels are data, so brackets are not markup and :name: is not an emoji.
    return _Console(
        stderr=is_error, markup=False, emoji=False, highlight=False, width=None if stream.isatty() else _WIDTH
    )
