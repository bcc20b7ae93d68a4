"""Compare a figure of the paper with ours, and say whether it was reproduced."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Literal

from benchmarks.tables import markdown_table

__all__ = ["Figure", "Line", "Measured", "Verdict", "comparison", "is_missed", "judge", "to_json", "with_reason"]

Verdict = Literal["reproduced", "better", "not", "not run", "no figure"]
N_SPREADS = 2.0


@dataclass(frozen=True)
class Figure:
    """A number in the paper."""

    value: float
    spread: float | None = None
    """Standard deviation over the paper's seeds or folds, if it gives one."""

    def show(self, digits: int) -> str:
        """Return the number as the paper writes it."""
        return f"{self.value:.{digits}f}" + (f" ± {self.spread:.{digits}f}" if self.spread is not None else "")


@dataclass(frozen=True)
class Measured:
    """Our numbers, one per seed or fold."""

    values: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Their mean."""
        return fmean(self.values)

    @property
    def spread(self) -> float:
        """Their standard deviation; 0 for a single number."""
        return stdev(self.values) if len(self.values) > 1 else 0.0

    def show(self, digits: int) -> str:
        """Return the mean, the spread and the count."""
        if not self.values:
            return "–"
        spread = f" ± {self.spread:.{digits}f}" if len(self.values) > 1 else ""
        return f"{self.mean:.{digits}f}{spread}"


@dataclass(frozen=True)
class Line:
    """One line of a comparison."""

    label: str
    paper: Figure | None
    mode: Measured
    """The numbers of paper mode, or of the peer."""
    default: Measured = field(default_factory=Measured)
    is_lower_better: bool | None = True
    """Whether lower is better. None if the number is neither good nor bad, such as additivity."""
    tolerance: float = 0.01
    """Relative tolerance, used if the paper gives no spread, or zero."""
    digits: int = 3
    why: str = ""


def judge(found: Measured, paper: Figure | None, line: Line) -> Verdict:
    """Return whether a number was reproduced: within two combined spreads of the paper and ours, or the tolerance."""
    if not found.values:
        return "not run"
    if paper is None:
        return "no figure"
    together = ((paper.spread or 0.0) ** 2 + found.spread**2) ** 0.5
    room = max(N_SPREADS * together, line.tolerance * abs(paper.value))
    difference = found.mean - paper.value
    if abs(difference) <= room:
        return "reproduced"
    if line.is_lower_better is None:
        return "not"
    return "better" if (difference < 0) == line.is_lower_better else "not"


def with_reason(lines: Iterable[Line], reason: str) -> list[Line]:
    """Return the lines. Lines that were not reproduced get the reason, unless they have one."""
    return [replace(line, why=line.why or reason) if is_missed(line) else line for line in lines]


def is_missed(line: Line) -> bool:
    """Whether any column was not reproduced."""
    return "not" in (judge(line.mode, line.paper, line), judge(line.default, line.paper, line))


def comparison(lines: Sequence[Line], *, mode: str = "paper mode", has_default: bool = True) -> str:
    """Return lines as a Markdown table with differences and verdicts."""
    header = ["", "paper", mode, "difference", "verdict"]
    header += ["default", "difference", "verdict"] if has_default else []
    has_why = any(line.why for line in lines)
    rows = []
    for line in lines:
        row = [line.label, "–" if line.paper is None else line.paper.show(line.digits)]
        for found in (line.mode, line.default)[: 1 + has_default]:
            row += [found.show(line.digits), _difference(found, line), _word(judge(found, line.paper, line))]
        rows.append([*row, line.why] if has_why else row)
    return markdown_table([*header, "why"] if has_why else header, rows)


def to_json(lines: Iterable[Line]) -> list[dict[str, object]]:
    """Return lines as JSON values."""
    return [
        {
            "label": line.label,
            "paper": None if line.paper is None else [line.paper.value, line.paper.spread],
            "paper mode": list(line.mode.values),
            "default": list(line.default.values),
            "verdict": judge(line.mode, line.paper, line),
            "verdict of default": judge(line.default, line.paper, line),
        }
        for line in lines
    ]


def _difference(found: Measured, line: Line) -> str:
    if not found.values or line.paper is None:
        return ""
    return f"{found.mean - line.paper.value:+.{line.digits}f}".replace("-", "−")


def _word(verdict: Verdict) -> str:
    return {"not": "**not**", "no figure": "no figure", "not run": "–"}.get(verdict, verdict)
