"""The page of the panel: losses, their ratios to the better of two references, ranks, and the series of sizes."""

from collections.abc import Mapping
from math import exp, log
from statistics import mean

from benchmarks.small.models import CONSTANT, MODELS, OURS, REFERENCES
from benchmarks.small.panel import PANEL, SIZES
from benchmarks.tables import four_digits, markdown_table

__all__ = ["render"]

Losses = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Losses by model, table and draw."""


_INTRODUCTION = """Made by `python -m benchmarks small`: RMSE of numbers and log loss of classes on rows that no model
has seen, means over the draws of the rows that all models have. Each model has its defaults, or the strength that
cross-validation chooses (`benchmarks/small`). *Noise* and *coin* have no signal."""


def render(losses: Losses) -> str:
    """Return the page as Markdown."""
    names = [name for name in MODELS if name in losses]
    labels = [case.label for case in PANEL if all(case.label in losses[name] for name in names)]
    means = {label: _means(losses, names, label) for label in labels}
    parts = [
        "# Small tables",
        _INTRODUCTION,
        markdown_table(
            ["", *(MODELS[name][0] for name in names)],
            [[label, *_best_bold([means[label][name] for name in names])] for label in labels],
        ),
        _summary(means, names),
        "## One size after the other",
        "NAE alone: where a regime ends, no jump may be. Each size is another draw of the rows.",
        _sizes(losses),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _means(losses: Losses, names: list[str], label: str) -> dict[str, float]:
    shared = set.intersection(*(set(losses[name][label]) for name in names))
    return {name: mean(losses[name][label][draw] for draw in sorted(shared)) for name in names} if shared else {}


def _summary(means: dict[str, dict[str, float]], names: list[str]) -> str:
    """Return ranks and ratios, as far as the required models have been run."""
    rows = [["mean rank", *(f"{mean(_rank(row, name) for row in means.values()):.2f}" for name in names)]]
    if all(name in names for name in REFERENCES):
        best = {label: min(row[name] for name in REFERENCES) for label, row in means.items()}
        ratios = {name: [row[name] / best[label] for label, row in means.items()] for name in names}
        rows.append(["loss / better of linear and EBM, mean", *(f"{mean(ratios[name]):.3f}" for name in names)])
        rows.append(["the same, geometric", *(f"{exp(mean(map(log, ratios[name]))):.3f}" for name in names)])
    if CONSTANT in names:
        worst = {name: max(row[name] / row[CONSTANT] for row in means.values()) for name in names}
        rows.append(["loss / that of the mean, at worst", *(f"{worst[name]:.3f}" for name in names)])
    return markdown_table([f"{len(means)} tables", *(MODELS[name][0] for name in names)], rows)


def _rank(row: dict[str, float], name: str) -> int:
    return 1 + sum(value < row[name] for value in row.values())


def _best_bold(values: list[float]) -> list[str]:
    return [f"**{four_digits(value)}**" if value == min(values) else four_digits(value) for value in values]


def _sizes(losses: Losses) -> str:
    ours = losses.get(OURS, {})
    names = list(dict.fromkeys(case.name for case in SIZES))
    sizes = sorted({case.n_train for case in SIZES})
    found = {(case.name, case.n_train): list(ours.get(case.label, {}).values()) for case in SIZES}
    rows = [
        [str(size), *(four_digits(mean(found[name, size])) if found.get((name, size)) else "–" for name in names)]
        for size in sizes
    ]
    return markdown_table(["rows", *names], rows)
