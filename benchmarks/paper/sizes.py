"""The number of parameters of the networks, and the statistics of the tables."""

from benchmarks.paper.accuracy import LABELS, SAMPLE, TABLES, at_hand
from benchmarks.paper.experiment import Experiment, Results, Section
from benchmarks.paper.runs import TABLE, Run
from benchmarks.paper.store import Report
from benchmarks.paper.timing import count_parameters
from benchmarks.paper.verdicts import Figure, Line, Measured, comparison
from benchmarks.tables import markdown_table

__all__ = ["EXPERIMENTS"]

WIDTHS = {"housing": 8, "mimic2": 17, "mimic3": 57, "income": 14, "credit": 30, "year": 90}
# Parameters and bytes in addition to NAM's, as printed in the paper.
NAE = {"housing": (37e3, 144 * 2**10), "mimic2": (157e3, 613 * 2**10), "mimic3": (1.7e6, 6.5 * 2**20)}
NAE |= {"income": (108e3, 420 * 2**10), "credit": (476e3, 1.8 * 2**20), "year": (4.2e6, 16.0 * 2**20)}
DIAGONAL = {"housing": (132e3, 516 * 2**10), "mimic2": (281e3, 1.1 * 2**20), "mimic3": (941e3, 3.59 * 2**20)}
DIAGONAL |= {"income": (231e3, 903 * 2**10), "credit": (495e3, 1.89 * 2**20), "year": (1.5e6, 5.67 * 2**20)}
DIM = 128
STATISTICS = {
    "housing": ("regression", 20_640, 8, 0, "–"),
    "mimic2": ("classification", 24_508, 17, 7, "2"),
    "mimic3": ("classification", 27_348, 57, 0, "2"),
    "income": ("classification", 32_561, 14, 8, "2"),
    "credit": ("classification", 284_807, 30, 0, "2"),
    "year": ("regression", 515_345, 90, 0, "–"),
}


def _theory(n: int, n_experts: int, *, is_diagonal: bool) -> int:
    return n * n_experts * (2 * DIM + 2) if is_diagonal else n * n_experts * ((n + 1) * DIM + 2)


def _added(n: int, n_experts: int, variant: str) -> int:
    """Return the number of parameters of the network without its encoders and the intercept.

    The paper counts all last layers as additional, so none are subtracted for NAM.
    """
    whole = count_parameters(n, n_experts=n_experts, variant=variant)
    encoders = count_parameters(n, n_experts=1, variant="nae-d") - _theory(n, 1, is_diagonal=True)
    return whole - encoders


def _show_parameters(results: Results) -> Section:
    del results  # the network is not trained
    lines = []
    for label, figures, n_experts, variant in (("NAE", NAE, 4, "nae"), ("NAE-D", DIAGONAL, 64, "nae-d")):
        for data, (count, size) in figures.items():
            n = WIDTHS[data]
            measured = _added(n, n_experts, variant)
            theory = _theory(n, n_experts, is_diagonal=variant == "nae-d")
            why = "" if measured == theory else f"theory {theory:,}, counted {measured:,}"
            for what, paper, ours in (
                ("parameters, thousands", count / 1e3, measured / 1e3),
                ("kB", size / 2**10, 4 * measured / 2**10),
            ):
                name, found = f"{label}, {LABELS[data]}: {what}", Measured((ours,))
                lines.append(Line(name, Figure(paper), found, is_lower_better=None, tolerance=0.03, digits=0, why=why))
    text = (
        "What NAE (d = 128, K = 4) and NAE-D (K = 64) have beyond NAM's encoders, counted on the network that is "
        "trained in paper mode, in float32. The paper's formulas are nK[(n + 1)d + 2] and nK(2d + 2). Its figures are "
        "rounded; 3 % either way counts as reproduced. The default needs no counting: what is left of it after "
        "training are tables."
    )
    return Section([text, comparison(lines, mode="counted", has_default=False)], lines)


def _dataset_runs() -> list[Run]:
    return [Run(data, TABLE) for data in at_hand()]


def _show_datasets(results: Results) -> Section:
    rows: list[list[str]] = []
    lines = []
    for data in (*TABLES, SAMPLE):
        paper, report = STATISTICS.get(data), results.report(Run(data, TABLE))
        found = None if report is None else _statistics(report)
        for who, numbers in (("paper", paper), ("here", found)):
            if numbers is not None:
                rows.append([LABELS[data], who, *(f"{each:,}" if isinstance(each, int) else each for each in numbers)])
        if found is None:
            rows.append([LABELS[data], "here", "not at hand", "", "", "", ""])
        if paper is not None and found is not None:
            for name, theirs, ours in zip(("rows", "features", "categories"), paper[1:4], found[1:4], strict=True):
                line = Line(
                    f"{LABELS[data]}, {name}", Figure(theirs), Measured((ours,)), is_lower_better=None, digits=0
                )
                lines.append(line)
    table = markdown_table(["", "", "task", "rows", "features", "categorical", "classes"], rows)
    text = "The credit sample holds all 492 frauds of the full table and ten other transactions for each."
    texts = [text, table]
    if lines:
        texts.append(comparison(lines, mode="here", has_default=False))
    return Section(texts, lines)


def _statistics(report: Report) -> tuple[str, int, int, int, str]:
    n_rows, n_classes = report.n_train + report.n_test, report.n_classes or 0
    task = "classification" if n_classes else "regression"
    return task, n_rows, report.n_features, report.n_categorical or 0, str(n_classes) if n_classes else "–"


EXPERIMENTS = (
    Experiment("parameters", "Parameters and memory", "Appendix, Table on complexity", tuple, _show_parameters),
    Experiment("datasets", "Statistics of the tables", "Appendix, Table on data", _dataset_runs, _show_datasets),
)
