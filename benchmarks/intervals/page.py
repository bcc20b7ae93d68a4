"""The page of prediction intervals and sets."""

import math
import statistics
from collections.abc import Mapping, Sequence

from benchmarks.datasets import DATASETS, Dataset
from benchmarks.intervals.measuring import LEVELS, Outcome, Times
from benchmarks.machine import describe
from benchmarks.tables import four_digits, markdown_table
from nae._words import counted

__all__ = ["Found", "render"]

Found = Mapping[str, Mapping[str, Sequence[Outcome]]]
"""The outcomes of every split, by table and by who made them."""
_CLOSE = 0.02
_HOW = """\
Our models are those of the suite with their defaults, fitted to the training and validation rows of a split and asked
for 80, 90 and 95 % on its test rows. Residuals are those of the rows that members held out; no rows are kept apart.
Coverage is the mean over the splits, ± its standard error: the larger of that over the splits and that of a share of
all test rows. *Measured* is the coverage that the model measured itself. A coverage is met if it is within two points
of the one asked for, or within two standard errors where that is more; others are bold. *CQR* is conformalised
quantile regression with LightGBM: per coverage two models, which 80 % of the same rows grow, 10 % stop, and 10 %
conformalise."""
_EMPTY = (
    "Sets may be empty here. Those that never are, the default, hold the class at least as often as the model is right."
)


def render(found: Found, times: Mapping[str, Times], *, n_splits: int) -> str:
    """Return the page."""
    numbers = [one for one in DATASETS if one.task == "regression" and found.get(one.name, {}).get("ours")]
    classes = [one for one in DATASETS if one.task != "regression" and found.get(one.name, {}).get("ours")]
    parts = [
        "# Prediction intervals",
        f"Made by `python -m benchmarks intervals` on {describe()}; at most {counted(n_splits, 'split')}.",
        _HOW,
        _verdict(found, numbers, classes, times),
        "## Numbers",
        _coverage(found, numbers),
        "Mean widths, and the ratio of ours to that of CQR:",
        _widths(found, numbers),
        "Coverage of CQR:",
        _peer(found, numbers),
        "## Classes",
        _EMPTY,
        _sets(found, classes),
        "## Time",
        "Milliseconds of processor time for all test rows, the least of 15 calls, by the tables without `compile()`.",
        _times(times),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdict(found: Found, numbers: Sequence[Dataset], classes: Sequence[Dataset], times: Mapping[str, Times]) -> str:
    tables = [*numbers, *classes]
    cells = [(table, at) for table in tables for at in range(len(LEVELS))]
    missed = [
        f"{table.label} at {100 * LEVELS[at]:.0f} %"
        for table, at in cells
        if not _is_met(found[table.name]["ours"], at)
    ]
    met = f"**Coverage** is met in {len(cells) - len(missed)} of {len(cells)} cases"
    met += f"; missed: {', '.join(missed)}." if missed else "."
    lines = [met]
    peers = [table for table in numbers if found[table.name].get("cqr")]
    if peers:
        counts = [sum(_ratio(found[table.name], at) <= 1 for table in peers) for at in range(len(LEVELS))]
        shown = ", ".join(f"{count} at {100 * level:.0f} %" for count, level in zip(counts, LEVELS, strict=True))
        lines.append(f"**Width**: of {len(peers)} tables, ours is no wider than CQR on {shown}.")
    if ratios := [one.ratio for one in times.values()]:
        middle, most = statistics.median(ratios), max(ratios)
        lines.append(f"**Time**: intervals or sets take {middle:.2f} times the time of predicting, at most {most:.2f}.")
    return "\n".join(f"- {line}" for line in lines)


def _mean(outcomes: Sequence[Outcome], name: str, at: int) -> float:
    return statistics.fmean(getattr(one, name)[at] for one in outcomes)


def _error(outcomes: Sequence[Outcome], at: int) -> float:
    """Return the standard error of the mean coverage."""
    level, n_rows = LEVELS[at], sum(one.n_test for one in outcomes)
    of_rows = math.sqrt(level * (1 - level) / n_rows)
    if len(outcomes) < 2:
        return of_rows
    return max(of_rows, statistics.stdev(one.coverage[at] for one in outcomes) / math.sqrt(len(outcomes)))


def _is_met(outcomes: Sequence[Outcome], at: int) -> bool:
    return abs(_mean(outcomes, "coverage", at) - LEVELS[at]) <= max(_CLOSE, 2 * _error(outcomes, at))


def _ratio(by_maker: Mapping[str, Sequence[Outcome]], at: int) -> float:
    return _mean(by_maker["ours"], "width", at) / _mean(by_maker["cqr"], "width", at)


def _shares(outcomes: Sequence[Outcome]) -> list[str]:
    cells = []
    for at in range(len(LEVELS)):
        text = f"{_mean(outcomes, 'coverage', at):.3f} ± {_error(outcomes, at):.3f}"
        cells.append(text if _is_met(outcomes, at) else f"**{text}**")
    return cells


def _percent() -> list[str]:
    return [f"{100 * level:.0f} %" for level in LEVELS]


def _coverage(found: Found, tables: Sequence[Dataset]) -> str:
    header = ["", "splits", "test rows", *_percent(), *(f"measured {one}" for one in _percent()), "s fit"]
    rows = []
    for table in tables:
        ours = found[table.name]["ours"]
        measured = [f"{_mean(ours, 'measured', at):.3f}" for at in range(len(LEVELS))]
        seconds = f"{statistics.fmean(one.seconds for one in ours):.0f}"
        rows.append([table.label, str(len(ours)), f"{ours[0].n_test:,}", *_shares(ours), *measured, seconds])
    return markdown_table(header, rows)


def _widths(found: Found, tables: Sequence[Dataset]) -> str:
    header = ["", *(f"{who} {one}" for one in _percent() for who in ("ours", "CQR", "ratio"))]
    rows = []
    for table in (one for one in tables if found[one.name].get("cqr")):
        row = [table.label]
        for at in range(len(LEVELS)):
            ours, peer = (_mean(found[table.name][who], "width", at) for who in ("ours", "cqr"))
            row += [four_digits(ours), four_digits(peer), f"{ours / peer:.2f}"]
        rows.append(row)
    return markdown_table(header, rows)


def _peer(found: Found, tables: Sequence[Dataset]) -> str:
    header = ["", "splits", *_percent(), "s fit"]
    rows = []
    for table in (one for one in tables if found[one.name].get("cqr")):
        peer = found[table.name]["cqr"]
        rows.append(
            [table.label, str(len(peer)), *_shares(peer), f"{statistics.fmean(one.seconds for one in peer):.0f}"]
        )
    return markdown_table(header, rows)


def _sets(found: Found, tables: Sequence[Dataset]) -> str:
    header = ["", "splits", *_percent(), *(f"size {one}" for one in _percent())]
    header += [f"not empty {one}" for one in _percent()]
    rows = []
    for table in tables:
        ours = found[table.name]["ours"]
        sizes = [f"{_mean(ours, 'width', at):.2f}" for at in range(len(LEVELS))]
        full = [f"{_mean(ours, 'not_empty', at):.3f}" for at in range(len(LEVELS))]
        rows.append([table.label, str(len(ours)), *_shares(ours), *sizes, *full])
    return markdown_table(header, rows)


def _times(times: Mapping[str, Times]) -> str:
    header = ["", "rows", "predict", "interval or set", "ratio"]
    rows = [
        [table.label, f"{one.n_rows:,}", f"{one.predicting:.1f}", f"{one.doubting:.1f}", f"{one.ratio:.2f}"]
        for table in DATASETS
        if (one := times.get(table.name)) is not None
    ]
    return markdown_table(header, rows)
