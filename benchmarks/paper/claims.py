"""Claims: pictures and sentences of the paper, checked as numbers that must lie within limits."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.paper.verdicts import Verdict
from benchmarks.tables import markdown_table

__all__ = ["Claim", "claims_table", "claims_to_json", "judge_claim", "largest"]


@dataclass(frozen=True)
class Claim:
    """A sentence about a number, and the limits within which it is true."""

    text: str
    mode: float | None
    """The number in paper mode; None if it has not been run."""
    default: float | None = None
    least: float = -math.inf
    most: float = math.inf
    digits: int = 3
    why: str = ""

    def show(self, value: float) -> str:
        """Return a number as text; tiny numbers as powers of ten."""
        is_tiny = 0 < abs(value) < 10**-self.digits
        return (f"{value:.0e}" if is_tiny else f"{value:.{self.digits}f}").replace("-", "−")

    @property
    def limits(self) -> str:
        """The limits in words."""
        low, high = self.show(self.least), self.show(self.most)
        if math.isinf(self.most):
            return f"at least {low}"
        return f"at most {high}" if math.isinf(self.least) else f"{low} to {high}"


def judge_claim(claim: Claim, value: float | None) -> Verdict:
    """Return whether the sentence is true of a number."""
    if value is None:
        return "not run"
    return "reproduced" if claim.least <= value <= claim.most else "not"


def claims_table(claims: Sequence[Claim], *, mode: str = "paper mode", has_default: bool = True) -> str:
    """Return claims as a Markdown table with verdicts."""
    header = ["what the paper shows", "true if", mode, "verdict", *(["default", "verdict"] if has_default else [])]
    has_why = any(claim.why for claim in claims)
    rows = []
    for claim in claims:
        row = [claim.text, claim.limits]
        for value in (claim.mode, claim.default)[: 1 + has_default]:
            word = judge_claim(claim, value)
            row += ["–" if value is None else claim.show(value), {"not": "**not**", "not run": "–"}.get(word, word)]
        rows.append([*row, claim.why] if has_why else row)
    return markdown_table([*header, "why"] if has_why else header, rows)


def claims_to_json(claims: Iterable[Claim]) -> list[dict[str, object]]:
    """Return claims as JSON values."""
    return [
        {
            "claim": claim.text,
            "limits": claim.limits,
            "paper mode": claim.mode,
            "default": claim.default,
            "verdict": judge_claim(claim, claim.mode),
            "verdict of default": judge_claim(claim, claim.default),
        }
        for claim in claims
    ]


def largest(values: Iterable[float | None]) -> float | None:
    """Return the largest number; None if one is missing."""
    found = list(values)
    known = [value for value in found if value is not None]
    return max(known) if known and len(known) == len(found) else None
