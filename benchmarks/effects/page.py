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
*Noise taken for more*: the share of idle features of which the model does not say that they cannot be told from noise.
*Missed*: the share of the other features of which it does. Where the truth has an interaction, the bands are about its
additive part.

| tables | fits | 80 % | 90 % | 95 % | members | width | noise taken for more | missed | seconds per fit |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |
"""
_ALONE = """
The verdict alone, on further tables and for a model that has learned nothing:

| tables | idle features | noise taken for more |
| --- | --: | --: |
"""


def render(trials: "Sequence[Trial]", verdicts: Mapping[str, list[float]]) -> str:
    """Return the page as Markdown; ``verdicts`` are the chances of idle features without a network, by case."""
    lines = [_line(case.label, [one for one in trials if one.case == case.label]) for case in CASES]
    every = [chance for one in trials for chance in one.false_alarms]
    total = f"\nOf all {len(every):,} idle features, {_share(every, below=True)} were taken for more than noise.\n"
    alone = [
        f"| {label} | {len(found):,} | {_share(found, below=True)} |" for label, found in verdicts.items() if found
    ]
    page = _HEAD + "\n".join(line for line in lines if line) + "\n" + total
    return page + _ALONE + "\n".join(alone) + "\n" if alone else page


def _line(label: str, trials: "list[Trial]") -> str:
    if not trials:
        return ""
    covered = np.array([one.covered for one in trials])
    error = covered.std(axis=0) / np.sqrt(max(len(trials) - 1, 1))
    cells = [f"{100 * mean:.1f} ± {100 * off:.1f}" for mean, off in zip(covered.mean(axis=0), error, strict=True)]
    cells.append(f"{100 * np.mean([one.members for one in trials]):.0f}")
    found = [chance for one in trials for chance in one.found]
    cells.append(f"{np.mean([one.width for one in trials]):.3f}" if found else "")
    cells.append(_share([chance for one in trials for chance in one.false_alarms], below=True))
    cells.append(_share(found, below=False) if found else "")
    cells.append(f"{np.mean([one.seconds for one in trials]):.1f}")
    return f"| {label} | {len(trials)} | {' | '.join(cells)} |"


def _share(chances: list[float], *, below: bool) -> str:
    is_below = np.array(chances) <= _LEVEL
    return f"{100 * np.mean(is_below if below else ~is_below):.1f} %"
