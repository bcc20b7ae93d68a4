"""The section on scores and cost."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.guarantees.cases import CASES, Case
from benchmarks.guarantees.record import Record
from benchmarks.guarantees.subjects import OURS, SUBJECTS
from benchmarks.tables import four_digits, markdown_table
from nae._words import counted

__all__ = ["render_scores"]

_Trials = Sequence[Mapping[str, Any]]

_HOW = (
    "RMSE on test rows, free → with the promised directions; the best one with them is bold. The splits are those of "
    "the suite (seed 0 and following; means over them). NAE also learns from the validation rows, which boosted trees "
    "need for early stopping; with *all rows*, as many trees are then grown on training and validation rows."
)
_COST = "Processor seconds of the fit with the promise over those of the free fit, in the same run with one thread:"


def render_scores(folder: Path) -> str:
    """Return the section; empty if there are no results."""
    by_case: dict[str, dict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for one in Record(folder / "scores.json").read().values():
        if not one["reason"]:
            by_case[one["case"]][one["subject"]].append(one)
    if not by_case:
        return ""
    cases = [case for case in CASES if case.name in by_case]
    shown = [each for each in SUBJECTS if any(each.name in found for found in by_case.values())]
    header = ["", *(each.label for each in shown)]
    names = [each.name for each in shown]
    scores = [[_title(case, by_case[case.name]), *_score_cells(by_case[case.name], names)] for case in cases]
    costs = [[case.label, *(_cost(by_case[case.name][name]) for name in names)] for case in cases]
    proofs = [line for case in cases for line in _proof(case, by_case[case.name][OURS])]
    parts = ["## Scores and cost", _HOW, markdown_table(header, scores), _COST, markdown_table(header, costs)]
    return "\n\n".join([*parts, "\n".join(proofs)])


def _title(case: Case, found: Mapping[str, _Trials]) -> str:
    n = max(map(len, found.values()))
    return case.label if n == 1 else f"{case.label}, {counted(n, 'split')}"


def _score_cells(found: Mapping[str, _Trials], names: Sequence[str]) -> list[str]:
    kept = {name: mean(one["kept"] for one in found[name]) for name in names if found.get(name)}
    cells = []
    for name in names:
        if name not in kept:
            cells.append("–")
            continue
        free = four_digits(mean(one["free"] for one in found[name]))
        text = four_digits(kept[name])
        cells.append(f"{free} → {f'**{text}**' if kept[name] == min(kept.values()) else text}")
    return cells


def _cost(trials: _Trials) -> str:
    if not trials:
        return "–"
    free, kept = (sum(one[key] for one in trials) for key in ("free_seconds", "kept_seconds"))
    return f"{kept / free:.2f} ({kept / len(trials):,.1f} s)"


def _proof(case: Case, trials: _Trials) -> list[str]:
    if not trials:
        return []
    seconds = max(one["certify_seconds"] for one in trials)
    verdict = "proves all" if all(one["is_proven"] for one in trials) else "does not prove all"
    return [f"* {case.label}: `certify` {verdict} {counted(len(case.signs), 'promise')} in {seconds:.2f} s."]
