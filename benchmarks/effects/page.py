"""The page of the measured bands and verdicts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.effects.simulations import CASES

if TYPE_CHECKING:
    from benchmarks.effects.command import Trial

__all__ = ["render"]

_LEVEL = 0.05
_HEAD = """# How sure effects are

Made by `python -m benchmarks effects`: the defaults on drawn tables, whose five curves, six levels and three idle
features are known. *80, 90, 95 %*: the share of the true effects that lie within the bands of that coverage, over all
features and training rows, with its standard error over the tables. *Members*: the share within 1.645 standard
deviations of the members. *Width*: half the mean width of the 90 % band, beside the standard deviation of the score.
Where the truth has an interaction, the bands are about its additive part.

| tables | fits | 80 % | 90 % | 95 % | members | width | seconds per fit |
| --- | --: | --: | --: | --: | --: | --: | --: |
"""
_VERDICTS = """
The verdict on further tables, with a model that has learned nothing. *Noise taken for more*: the share of idle features
of which it does not say that they cannot be told from noise, at a level of 5 %. *Missed*: the share of the other
features of which it does.

| tables | idle features | noise taken for more | missed |
| --- | --: | --: | --: |
"""
Chances = tuple[list[float], list[float]]  # of idle features, and of all others


def render(trials: "Sequence[Trial]", verdicts: Mapping[str, Chances]) -> str:
    """Return the page as Markdown; ``verdicts`` are by case."""
    lines = [_line(case.label, [one for one in trials if one.case == case.label]) for case in CASES]
    page = _HEAD + "\n".join(line for line in lines if line) + "\n"
    found = {label: chances for label, chances in verdicts.items() if chances[0]}
    if not found:
        return page
    every = [chance for idle, _ in found.values() for chance in idle]
    rows = [_verdict(label, *chances) for label, chances in found.items()]
    return page + _VERDICTS + "\n".join([*rows, _verdict("all", every, [])]) + "\n"


def _verdict(label: str, idle: list[float], others: list[float]) -> str:
    missed = _share(others, below=False) if others else ""
    return f"| {label} | {len(idle):,} | {_share(idle, below=True)} | {missed} |"


def _line(label: str, trials: "list[Trial]") -> str:
    if not trials:
        return ""
    covered = np.array([one.covered for one in trials])
    error = covered.std(axis=0) / np.sqrt(max(len(trials) - 1, 1))
    cells = [f"{100 * mean:.1f} ± {100 * off:.1f}" for mean, off in zip(covered.mean(axis=0), error, strict=True)]
    cells.append(f"{100 * np.mean([one.members for one in trials]):.0f}")
    is_empty = next(case.is_empty for case in CASES if case.label == label)
    cells.append("" if is_empty else f"{np.mean([one.width for one in trials]):.3f}")
    cells.append(f"{np.mean([one.seconds for one in trials]):.1f}")
    return f"| {label} | {len(trials)} | {' | '.join(cells)} |"


def _share(chances: list[float], *, below: bool) -> str:
    is_below = np.array(chances) <= _LEVEL
    return f"{100 * np.mean(is_below if below else ~is_below):.1f} %"
