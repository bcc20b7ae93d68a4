"""Read the figures of a recorded page of the suite, so that runs of peers need not be repeated to compare with them."""

import re
from pathlib import Path

from nae.errors import FormatError

__all__ = ["Figures", "read_section"]

Figures = dict[str, dict[str, float]]
"""By the label of a table, then by the label of a model."""

_NUMBER = re.compile(r"-?[\d,]+(\.\d+)?(e-?\d+)?")


def read_section(page: Path, heading: str) -> Figures:
    """Return the first table below a heading. Cells that hold no number are left out; of a mean ± error, the mean."""
    lines = page.read_text(encoding="utf-8").splitlines()
    if f"## {heading}" not in lines:
        raise FormatError(f"{page} must have a section {heading!r}; it has none.")
    start = lines.index(f"## {heading}")
    first = next(at for at in range(start, len(lines)) if lines[at].startswith("|"))
    last = next((at for at in range(first, len(lines)) if not lines[at].startswith("|")), len(lines))
    header, _, *rows = (_cells(line) for line in lines[first:last])
    return {row[0].partition(",")[0]: _numbers(header[1:], row[1:]) for row in rows}


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def _numbers(names: list[str], cells: list[str]) -> dict[str, float]:
    found = {name: _NUMBER.match(cell) for name, cell in zip(names, cells, strict=True)}
    return {name: float(match[0].replace(",", "")) for name, match in found.items() if match}
