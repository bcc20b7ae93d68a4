"""Turn reports into Markdown tables: scores, ranks, wins and costs. Nothing is run here."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DATASETS, Dataset
from benchmarks.models import ALL, OURS, Entry
from benchmarks.scores import standard_error
from benchmarks.store import Report
from nae._words import counted

__all__ = [
    "Duel",
    "Results",
    "four_digits",
    "markdown_table",
    "mean_cells",
    "render_standing",
    "render_suite",
    "render_summary",
    "title",
]

_SUMMARY = (OURS, "lightgbm", "xgboost", "catboost", "ebm", "spline")


@dataclass(frozen=True)
class Duel:
    """One model against another, on the data sets that both finished."""

    wins: int
    ties: int
    n: int
    clear_wins: int
    """Number of wins by more than two standard errors of the difference; losses are counted in the same way."""
    clear_losses: int
    error_ratio: float
    """Geometric mean of the ratio of the opponent's error (RMSE, 1 - AUC, 1 - accuracy) to the first model's."""


@dataclass(frozen=True)
class Results:
    """All reports of a suite, by data set and model, in the order of the registries."""

    reports: tuple[Report, ...]
    influences: Mapping[tuple[str, str], NDArray[np.float32]] = field(default_factory=dict)

    @property
    def datasets(self) -> list[Dataset]:
        """Data sets with at least one report."""
        names = {report.dataset for report in self.reports}
        return [dataset for dataset in DATASETS if dataset.name in names]

    @property
    def entries(self) -> list[Entry]:
        """Models with at least one report."""
        names = {report.model for report in self.reports}
        return [entry for entry in ALL if entry.name in names]

    @property
    def home(self) -> str:
        """The machine and the threads of most runs. Only seconds and memory of these runs are shown."""
        places = Counter(report.where for report in self.reports if report.outcome == "done")
        return places.most_common(1)[0][0] if places else ""

    @property
    def guests(self) -> list[Report]:
        """Runs on other machines or with other threads. Their scores count, but their costs cannot be compared."""
        return [report for report in self.reports if report.outcome == "done" and report.where != self.home]

    def report(self, dataset: str, model: str) -> Report | None:
        """Return one report, if there is one."""
        for report in self.reports:
            if (report.dataset, report.model) == (dataset, model):
                return report
        return None

    def score(self, dataset: Dataset, model: str) -> float | None:
        """Return the score by which models are ranked, or None if the run has no score."""
        report = self.report(dataset.name, model)
        return None if report is None else report.score(dataset.metric.name)

    def error(self, dataset: Dataset, model: str) -> float | None:
        """Return the score as an error."""
        score = self.score(dataset, model)
        return None if score is None else dataset.metric.error(score)

    def contenders(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the models that finished at least one run."""
        return [entry for entry in entries if any(self.score(each, entry.name) is not None for each in self.datasets)]

    def ranks(self, dataset: Dataset, entries: Sequence[Entry]) -> dict[str, float] | None:
        """Return every rank, 1 for the best. Ties share ranks; failed runs are last. None if any is missing."""
        errors: dict[str, float] = {}
        for entry in entries:
            report = self.report(dataset.name, entry.name)
            if report is None or report.outcome == "unavailable":
                return None
            error = self.error(dataset, entry.name)
            errors[entry.name] = float("inf") if error is None else error
        values = list(errors.values())
        return {
            name: 1 + sum(other < error for other in values) + (values.count(error) - 1) / 2
            for name, error in errors.items()
        }

    def duel(self, model: str, opponent: str) -> Duel:
        """Return the comparison of one model with another."""
        both, gaps = [], []
        for dataset in self.datasets:
            a, b = self.error(dataset, model), self.error(dataset, opponent)
            if a is not None and b is not None:
                both.append((a, b))
                gaps.append((b - a) / self._doubt(dataset, model, opponent))
        ratios = [log(max(b, 1e-12) / max(a, 1e-12)) for a, b in both]
        return Duel(
            wins=sum(a < b for a, b in both),
            ties=sum(a == b for a, b in both),
            n=len(both),
            clear_wins=sum(gap > 2 for gap in gaps),
            clear_losses=sum(gap < -2 for gap in gaps),
            error_ratio=exp(sum(ratios) / len(ratios)) if ratios else float("nan"),
        )

    def _doubt(self, dataset: Dataset, model: str, opponent: str) -> float:
        """Return the standard error of the difference of two errors; infinite if unknown."""
        pair = [self.influences.get((dataset.name, name)) for name in (model, opponent)]
        if pair[0] is None or pair[1] is None or len(pair[0]) != len(pair[1]):
            return inf
        return max(standard_error(pair[0], pair[1]), 1e-300)


def render_suite(
    reports: Iterable[Report], influences: Mapping[tuple[str, str], NDArray[np.float32]] | None = None
) -> str:
    """Return the page of a suite."""
    results = Results(tuple(reports), influences or {})
    sections = [
        ("Scores", _scores(results, results.contenders(results.entries))),
        ("Ranks", _ranks(results, [entry for entry in results.entries if entry.is_ranked])),
        ("Ranks of the models that have run wherever NAE has", _ranks(results, _as_wide_as_ours(results))),
        ("Ranks of additive models", _ranks(results, [entry for entry in results.entries if entry.is_additive])),
        ("Wins", _wins(results)),
        ("Log loss", _log_loss(results)),
        ("How additive", _additivity(results)),
        ("Fit, seconds", _costs(results, lambda report: report.fit_seconds)),
        ("Fit, processor seconds", _costs(results, lambda report: report.fit_processor_seconds)),
        ("Predicting all test rows, seconds", _costs(results, lambda report: report.predict_seconds)),
        ("Peak memory of the process, MB", _costs(results, lambda report: report.peak_memory_mb)),
        ("Runs without a score", _failures(results)),
    ]
    parts = [f"## {title}\n\n{text}" for title, text in sections if text]
    return "\n\n".join(["# Suite\n\n" + _head(results), *parts]) + "\n"


def render_summary(reports: Iterable[Report]) -> str:
    """Return the summary for the README: scores, mean ranks and wins against the best-known peers."""
    results = Results(tuple(reports))
    again = [entry for entry in results.contenders(results.entries) if entry.is_refitted]
    which = "Of boosted trees that are grown again on all rows, those that say when to stop included"
    note = f"\n{which}, it beats {_wins_over(results, again)}." if again else ""
    return f"{_scores(results, _best_known(results))}\n\n{render_standing(results)}{note}"


def render_standing(results: Results) -> str:
    """Return mean ranks, and wins against the best-known peers, as two sentences."""
    ranked = [entry for entry in results.contenders(results.entries) if entry.is_ranked]
    found = [ranks for ranks in (results.ranks(dataset, ranked) for dataset in results.datasets) if ranks]
    means = sorted((sum(ranks[entry.name] for ranks in found) / max(1, len(found)), entry.label) for entry in ranked)
    places = ", ".join(f"{label} {mean:.2f}" for mean, label in means)
    wins = _wins_over(results, [entry for entry in _best_known(results) if entry.name != OURS])
    return (
        f"Mean rank of all {len(ranked)} models where all have run ({counted(len(found), 'table')}): {places}.\n"
        f"NAE beats {wins}."
    )


def _wins_over(results: Results, peers: Iterable[Entry]) -> str:
    duels = [(entry.label, results.duel(OURS, entry.name)) for entry in peers]
    return ", ".join(f"{label.partition(',')[0]} on {duel.wins} of {duel.n}" for label, duel in duels)


def _best_known(results: Results) -> list[Entry]:
    return [entry for entry in results.entries if entry.name in _SUMMARY]


def _as_wide_as_ours(results: Results) -> list[Entry]:
    """Return the ranked models that have run wherever our model has, unless these are all models."""
    ranked = results.contenders(entry for entry in results.entries if entry.is_ranked)
    ours = [each for each in results.datasets if results.score(each, OURS) is not None]
    found = [entry for entry in ranked if all(results.score(each, entry.name) is not None for each in ours)]
    return found if len(found) < len(ranked) else []


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text; all other columns are numbers."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def _head(results: Results) -> str:
    done = [report for report in results.reports if report.outcome == "done"]
    versions: dict[str, set[str]] = {}
    for report in done:
        for name, version in report.versions.items():
            if name != "nae" or report.model.startswith(OURS):  # peers do not depend on our own code
                versions.setdefault(name, set()).add(version)
    home = [report for report in done if report.where == results.home]
    lines = [
        "Made by `python -m benchmarks suite`; how, and what the peers were given, is in `docs/benchmarks.md`.",
        f"{counted(len(home), 'run')}, one after another, each in its own process: {results.home or 'nowhere yet'}.",
        ", ".join(f"{name} {_join(found)}" for name, found in sorted(versions.items())) + ".",
    ]
    lines += _elsewhere(results)
    busy = [report.foreign_load or 0.0 for report in home if report.is_loaded]
    if busy:
        lines.append(
            f"**{len(busy)} of {len(home)} runs shared the machine**: others used up to {max(busy):.0%} of it, so "
            "their seconds are too long; scores are not touched. `--redo-if-loaded` repeats these runs."
        )
    return "\n".join(lines)


def _elsewhere(results: Results) -> list[str]:
    """Return a line per machine or number of threads that differs from that of most runs."""
    found: dict[str, dict[str, list[str]]] = {}
    datasets = {dataset.name: dataset.label for dataset in results.datasets}
    models = {entry.name: entry.label for entry in results.entries}
    for report in results.guests:
        if report.dataset in datasets and report.model in models:
            found.setdefault(report.where, {}).setdefault(models[report.model], []).append(datasets[report.dataset])
    if not found:
        return []
    head = "Runs elsewhere: their scores count; seconds and memory cannot be compared and are left out.\n"
    places = [
        f"- {place}: {'; '.join(f'{model} on {_few(tables)}' for model, tables in runs.items())}."
        for place, runs in sorted(found.items())
    ]
    return ["\n".join([head, *places]) + "\n"]


def _few(tables: Sequence[str]) -> str:
    return ", ".join(tables) if len(tables) <= 4 else f"{len(tables)} tables"


def _join(texts: Iterable[str]) -> str:
    return " / ".join(sorted({text for text in texts if text})) or "unknown"


def _scores(results: Results, entries: Sequence[Entry]) -> str:
    rows = []
    for dataset in results.datasets:
        errors = {entry.name: results.error(dataset, entry.name) for entry in entries}
        best = min((error for error in errors.values() if error is not None), default=None)
        cells = [_score_cell(results, dataset, entry, is_best=errors[entry.name] == best) for entry in entries]
        rows.append([title(dataset), *cells])
    return markdown_table(["", *(entry.label for entry in entries)], rows)


def title(dataset: Dataset) -> str:
    """Return the name of a table with its score and the better direction."""
    return f"{dataset.label}, {dataset.metric.label} {'↓' if dataset.metric.is_lower_better else '↑'}"


def _score_cell(results: Results, dataset: Dataset, entry: Entry, *, is_best: bool) -> str:
    score = results.score(dataset, entry.name)
    if score is None:
        report = results.report(dataset.name, entry.name)
        return "–" if report is None or report.outcome == "unavailable" else "failed"
    text = four_digits(score) if dataset.metric.is_lower_better else f"{score:.4f}"
    return f"**{text}**" if is_best else text


def four_digits(value: float) -> str:
    """Return a positive number as text with four digits, or with all digits before the point if these are more."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.4g}" if value >= 1 else f"{value:.4f}"


def _ranks(results: Results, entries: Sequence[Entry]) -> str:
    entries = results.contenders(entries)
    found = [(dataset, results.ranks(dataset, entries)) for dataset in results.datasets]
    ranked = [(dataset, ranks) for dataset, ranks in found if ranks is not None]
    if len(entries) < 2 or not ranked:
        return ""
    rows = [[dataset.label, *(f"{ranks[entry.name]:g}" for entry in entries)] for dataset, ranks in ranked]
    means = [sum(ranks[entry.name] for _, ranks in ranked) / len(ranked) for entry in entries]
    rows.append([f"mean of {len(ranked)}", *mean_cells(means)])
    return markdown_table(["", *(entry.label for entry in entries)], rows)


def mean_cells(means: Sequence[float]) -> list[str]:
    """Return mean ranks as text, with the best one marked."""
    return [f"**{mean:.2f}**" if mean == min(means) else f"{mean:.2f}" for mean in means]


def _wins(results: Results) -> str:
    ours = [entry for entry in results.contenders(results.entries) if entry.name.startswith(OURS)]
    peers = [entry for entry in results.contenders(results.entries) if not entry.name.startswith(OURS)]
    if not ours or not peers:
        return ""
    rows = []
    for peer in peers:
        row = [f"against {peer.label}"]
        for entry in ours:
            duel = results.duel(entry.name, peer.name)
            ties = f" ({duel.ties} ties)" if duel.ties else ""
            clear = f"{duel.clear_wins} : {duel.clear_losses}"
            row += [f"{duel.wins} of {duel.n}{ties}", clear, f"{duel.error_ratio:.3f}"]
        rows.append(row)
    header = [text for entry in ours for text in (f"{entry.label} wins", "clearly", "their error / its")]
    table = markdown_table(["", *header], rows)
    text = (
        "*Clearly*: wins and losses by more than two standard errors of the difference on the test rows. "
        "Errors are RMSE, 1 − AUC and 1 − accuracy; their ratio is a geometric mean, above 1 in our favour."
    )
    return f"{text}\n\n{table}"


def _log_loss(results: Results) -> str:
    entries = results.contenders(results.entries)
    rows = []
    for dataset in results.datasets:
        if dataset.task == "regression":
            continue
        reports = [results.report(dataset.name, entry.name) for entry in entries]
        losses = [None if report is None else report.log_loss for report in reports]
        best = min((loss for loss in losses if loss is not None), default=None)
        texts = ["–" if loss is None else f"**{loss:.4f}**" if loss == best else f"{loss:.4f}" for loss in losses]
        rows.append([dataset.label, *texts])
    return markdown_table(["", *(entry.label for entry in entries)], rows) if rows else ""


def _additivity(results: Results) -> str:
    entries = [entry for entry in results.contenders(results.entries) if entry.name.startswith(OURS)]
    rows = []
    for dataset in results.datasets:
        cells = []
        for entry in entries:
            found = results.report(dataset.name, entry.name)
            if found is None or None in (found.additivity, found.interaction_share, found.cancellation):
                cells.append("–")
            else:
                cells.append(f"{found.additivity:.3f} / {found.interaction_share:.3f} / {found.cancellation:.2f}")
        rows.append([dataset.label, *cells])
    if not entries:
        return ""
    table = markdown_table(["", *(entry.label for entry in entries)], rows)
    return f"Additivity / interaction share / cancellation, on test rows.\n\n{table}"


def _costs(results: Results, cost: Callable[[Report], float | None]) -> str:
    entries = results.contenders(results.entries)
    rows = []
    for dataset in results.datasets:
        reports = [results.report(dataset.name, entry.name) for entry in entries]
        costs = [None if report is None or report.where != results.home else cost(report) for report in reports]
        rows.append(
            [
                dataset.label,
                *("–" if each is None else f"{each:.3g}" if each < 100 else f"{each:,.0f}" for each in costs),
            ]
        )
    return markdown_table(["", *(entry.label for entry in entries)], rows)


def _failures(results: Results) -> str:
    rows = [
        [f"{report.model} on {report.dataset}", report.outcome, report.reason]
        for report in results.reports
        if report.outcome != "done"
    ]
    return markdown_table(["", "", "why"], rows) if rows else ""
