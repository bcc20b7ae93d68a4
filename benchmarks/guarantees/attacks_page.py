"""The section on attacks."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.guarantees.attack import KINDS
from benchmarks.guarantees.cases import CASES
from benchmarks.guarantees.record import Record
from benchmarks.guarantees.subjects import SUBJECTS
from benchmarks.tables import markdown_table

__all__ = ["render_attacks"]

_Results = Mapping[str, Mapping[str, Any]]

_HOW = (
    "Violations per million attacks. An attack compares the scores of two inputs that differ in a promised feature "
    "alone; a violation is a fall against the promise of more than 1e-6 of the score's spread (the highest minus the "
    "lowest score of the table's rows). A third of the attacks are random pairs, a third go along the feature (values "
    "of the table, the middles between them, our knots, values far outside), and a third start from the worst pairs "
    "and change other columns as long as the fall does not shrink. Other columns may be missing, far outside, or of a "
    "level that no row has. The score is the prediction, the log-odds, or the logarithm of the rate. *NAE, nothing "
    "promised* shows that the attacks find what there is. EBM has 4 outer bags here, since it is slow."
)
_NOTES = (
    "Rounding is no violation: ours adds float32 contributions in float64, XGBoost's scores are float32, and those of "
    "the others float64. EBM's constraint in fit leaves out all pairs of promised features; `monotonize` changes main "
    "effects after the fit, and its documentation says that pairs are not changed."
)


def render_attacks(folder: Path) -> str:
    """Return the section; empty if there are no results."""
    results = Record(folder / "attacks.json").read()
    if not results:
        return ""
    shown = [each for each in SUBJECTS if any(one["subject"] == each.name for one in results.values())]
    header = ["", "promised", *(each.label for each in shown)]

    def table(cell: Callable[[Mapping[str, Any]], str]) -> str:
        rows = [
            [case.label, case.promise, *(_cell(results, f"{case.name}/{each.name}", cell) for each in shown)]
            for case in CASES
            if any(one["case"] == case.name for one in results.values())
        ]
        return markdown_table(header, rows)

    parts = ["## Attacks", _HOW, table(_rate), "The largest fall, as a share of the score's spread:", table(_fall)]
    return "\n\n".join([*parts, _counts(results), _NOTES, *_refusals(results), *_examples(results), _versions(results)])


def _cell(results: _Results, name: str, cell: Callable[[Mapping[str, Any]], str]) -> str:
    one = results.get(name)
    return "–" if one is None or one["reason"] else cell(one)


def _counts(results: _Results) -> str:
    """Return how often the models were attacked."""
    labels = {each.name: each.label for each in SUBJECTS}
    by_count: dict[str, dict[str, list[str]]] = {}
    for one in results.values():
        count = sum(each["n_attacks"] for each in one["found"])
        if count:
            by_count.setdefault(f"{count / 1e6:.1f} million", {}).setdefault(_case(one), []).append(
                labels[one["subject"]]
            )
    usual = max(by_count, key=lambda count: sum(map(len, by_count[count].values())), default="0")
    others = [
        f"{count} on {case} ({', '.join(models)})"
        for count, cases in sorted(by_count.items())
        for case, models in cases.items()
        if count != usual
    ]
    return f"Attacks on each model: {'; '.join([usual, *others])}."


def _rate(one: Mapping[str, Any]) -> str:
    n_attacks, n_violations = (sum(each[key] for each in one["found"]) for key in ("n_attacks", "n_violations"))
    rate = 1e6 * n_violations / max(n_attacks, 1)
    return "**0**" if not n_violations else f"{rate:,.0f}" if rate >= 1 else f"{rate:.1g}"


def _fall(one: Mapping[str, Any]) -> str:
    size = _worst(one)["worst"]["size"]
    return "0" if size == 0 else f"{size:.1%}" if size >= 1e-3 else f"{size:.0e}"


def _worst(one: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = max(one["found"], key=lambda each: each["worst"]["size"])
    return found


def _refusals(results: _Results) -> list[str]:
    labels = {each.name: each.label for each in SUBJECTS}
    lines = [
        f"* {labels[one['subject']]}, {_case(one)}: {one['reason'].rstrip('.')}."
        for one in results.values()
        if one["reason"]
    ]
    return ["What could not be fitted:\n\n" + "\n".join(lines)] if lines else []


def _examples(results: _Results) -> list[str]:
    """Return where the largest falls of every model that broke a promise are, and which attacks found some."""
    broken = [one for one in results.values() if any(each["n_violations"] for each in one["found"])]
    labels = {each.name: each.label for each in SUBJECTS}
    rows = []
    for one in broken:
        worst = _worst(one)
        values = f"{worst['worst']['low']:.4g} → {worst['worst']['high']:.4g}"
        kinds = [f"{_rate({'found': [each for each in one['found'] if each['kind'] == kind]})}" for kind in KINDS]
        rows.append([f"{labels[one['subject']]}, {_case(one)}", worst["feature"], values, _fall(one), *kinds])
    header = ["", "feature", "from → to", "fall", *KINDS]
    text = "The largest fall of every model that broke a promise, and its violations per million attacks of each kind:"
    return [text, markdown_table(header, rows)] if rows else []


def _case(one: Mapping[str, Any]) -> str:
    return next(case.label for case in CASES if case.name == one["case"])


def _versions(results: _Results) -> str:
    found = sorted({f"{name} {version}" for one in results.values() for name, version in one["versions"].items()})
    return ", ".join(found) + "."
