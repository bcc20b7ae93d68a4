"""Summarise several splits per table, because a few hundred test rows say little about which model is better."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Dataset
from benchmarks.models import OURS, Entry
from benchmarks.store import Report
from benchmarks.tables import Results, four_digits, markdown_table, mean_cells, render_standing, title
from nae._words import counted

__all__ = ["Splits", "render_splits", "splits_sentence"]


@dataclass(frozen=True)
class Splits:
    """The results of several splits, on tables where every ranked model has run on every split."""

    results: tuple[Results, ...]
    datasets: tuple[Dataset, ...]
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, reports: Iterable[Iterable[Report]]) -> "Splits | None":
        """Return the common tables and models of the reports of several splits; None if there are none."""
        results = tuple(Results(tuple(each)) for each in reports)
        if len(results) < 2:
            return None
        entries = tuple(entry for entry in results[-1].contenders(results[-1].entries) if entry.is_ranked)
        datasets = tuple(
            dataset
            for dataset in results[-1].datasets
            if all(each.error(dataset, entry.name) is not None for each in results for entry in entries)
        )
        return cls(results, datasets, entries) if datasets and OURS in {entry.name for entry in entries} else None

    def scores(self, dataset: Dataset, model: str) -> NDArray[np.float64]:
        """Return the score on every split."""
        return np.array([each.score(dataset, model) for each in self.results], dtype=np.float64)

    def ranks(self, dataset: Dataset, model: str) -> NDArray[np.float64]:
        """Return the rank on every split."""
        found = [each.ranks(dataset, self.entries) for each in self.results]
        return np.array([ranks[model] for ranks in found if ranks], dtype=np.float64)

    def mean_rank(self, model: str) -> float:
        """Return the mean rank over all tables and splits."""
        return float(np.mean([self.ranks(dataset, model) for dataset in self.datasets]))

    def averaged(self) -> Results:
        """Return the first split, with mean scores over all splits on tables that have several."""
        names = {dataset.name: dataset for dataset in self.datasets}
        found = []
        for report in self.results[0].reports:
            dataset = names.get(report.dataset)
            if dataset is None:
                found.append(report)
            elif report.model in {entry.name for entry in self.entries}:
                mean = float(self.scores(dataset, report.model).mean())
                found.append(replace(report, **{dataset.metric.name: mean}))
        return Results(tuple(found))

    def n_wins(self, dataset: Dataset, model: str) -> int:
        """Return the number of splits on which our model is better."""
        sign = -1 if dataset.metric.is_lower_better else 1
        return int(np.sum(sign * self.scores(dataset, OURS) > sign * self.scores(dataset, model)))


def render_splits(reports: Iterable[Iterable[Report]]) -> str:
    """Return the section of a page with means over splits, ranks and wins; empty if there is only one split."""
    splits = Splits.of(reports)
    if splits is None:
        return ""
    entries, n = splits.entries, len(splits.results)
    header = ["", *(entry.label for entry in entries)]
    scores = [[title(each), *_score_cells(splits, each)] for each in splits.datasets]
    ranks = [
        [each.label, *(f"{splits.ranks(each, entry.name).mean():.1f}" for entry in entries)] for each in splits.datasets
    ]
    ranks.append(["mean", *mean_cells([splits.mean_rank(entry.name) for entry in entries])])
    peers = [entry for entry in entries if entry.name != OURS]
    wins = [[each.label, *(f"{splits.n_wins(each, entry.name)} of {n}" for entry in peers)] for each in splits.datasets]
    wins.append(["all", *(_all_wins(splits, entry) for entry in peers)])
    head = f"Means of {n} splits of the rows, ± their standard error; the first split is that of the tables above."
    return "\n\n".join(
        [
            "## Several splits",
            f"{head} {_places(splits)}.",
            markdown_table(header, scores),
            "Mean ranks:",
            markdown_table(header, ranks),
            "Splits on which NAE is better:",
            markdown_table(["", *(entry.label for entry in peers)], wins),
            f"With these means instead of the first split, among all tables:\n{render_standing(splits.averaged())}",
        ]
    )


def splits_sentence(reports: Iterable[Iterable[Report]]) -> str:
    """Return the standing of the models by mean scores; empty if there is only one split."""
    splits = Splits.of(reports)
    if splits is None:
        return ""
    tables = ", ".join(each.label for each in splits.datasets)
    return (
        f"The same with the means of {len(splits.results)} splits where they have been run ({tables}), since one split "
        f"says little about close models:\n{render_standing(splits.averaged())}"
    )


def _places(splits: Splits) -> str:
    """Return the number of runs per machine, because threads change the last digits of a score."""
    shown = {(dataset.name, entry.name) for dataset in splits.datasets for entry in splits.entries}
    reports = (report for each in splits.results for report in each.reports)
    places = Counter(report.where for report in reports if (report.dataset, report.model) in shown)
    return "; ".join(f"{counted(n, 'run')} on {place}" for place, n in places.most_common())


def _score_cells(splits: Splits, dataset: Dataset) -> list[str]:
    found = [splits.scores(dataset, entry.name) for entry in splits.entries]
    best = (min if dataset.metric.is_lower_better else max)(each.mean() for each in found)
    cells = []
    for scores in found:
        doubt = scores.std(ddof=1) / np.sqrt(len(scores))
        mean = four_digits(scores.mean()) if dataset.metric.is_lower_better else f"{scores.mean():.4f}"
        text = f"{mean} ± {doubt:,.0f}" if doubt >= 100 else f"{mean} ± {doubt:.2g}"
        cells.append(f"**{text}**" if scores.mean() == best else text)
    return cells


def _all_wins(splits: Splits, entry: Entry) -> str:
    n_wins = sum(splits.n_wins(dataset, entry.name) for dataset in splits.datasets)
    return f"{n_wins} of {len(splits.datasets) * len(splits.results)}"
