"""The docstrings of the estimators: the section on parameters is made from the parameter table."""

import inspect
import textwrap
from collections.abc import Callable
from typing import TypeVar

from nae.parameters import Entry, Table

__all__ = ["documented", "parameter_section"]

Kind = TypeVar("Kind", bound=type)

_WIDTH = 110
_NEXT = "Attributes\n----------\n"  # the section that follows that of the parameters


def documented(*tables: type[Table]) -> Callable[[Kind], Kind]:
    """Return a decorator that puts the parameters of the tables before the attributes of a class's docstring."""

    def decorate(kind: Kind) -> Kind:
        if kind.__doc__ is not None:  # python -OO has none
            summary, heading, rest = inspect.cleandoc(kind.__doc__).partition(_NEXT)
            kind.__doc__ = f"{summary}{parameter_section(*tables)}\n{heading}{rest}"
        return kind

    return decorate


def parameter_section(*tables: type[Table]) -> str:
    """Return the section on parameters, as numpydoc has it."""
    entries = (_item(entry) for table in tables for entry in table.entries())
    return "Parameters\n----------\n" + "".join(entries)


def _item(entry: Entry) -> str:
    text = textwrap.fill(entry.text, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return f"{entry.name} : {entry.rule.kind}, default={entry.default!r}\n{text}\n"
