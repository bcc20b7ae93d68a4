"""The section on the tightness of bounds."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.datasets import DATASETS, Dataset, dataset_named
from benchmarks.guarantees.record import Record
from benchmarks.tables import four_digits, markdown_table
from nae._words import counted

__all__ = ["render_tightness"]

_HOW = (
    'Bounds that training rows have shown (`bounds="data"`, the default) beside those of the experts '
    '(`bounds="experts"`, the paper\'s), on test rows of the first split. Both belong to one fit: clamps are measured '
    "after training, and rows that were trained on predict the same with and without them. *Tightness* is the share of "
    "the room between the bounds that contributions use, a mean over the features. *Width* is the mean sum of the "
    "distances between the bounds. The change of the score is beside its standard error; it is better above 0."
)


def render_tightness(folder: Path) -> str:
    """Return the section; empty if there are no results."""
    results = Record(folder / "tightness.json").read()
    shown = [dataset for dataset in DATASETS if dataset.name in results]
    if not shown:
        return ""
    found = list(results.values())
    header = ["", "tightness, experts", "data", "ratio", "width, data : experts", "score, experts", "data", "better by"]
    rows = [_row(dataset, results[dataset.name]) for dataset in shown]
    table = markdown_table(header, [*rows, _medians(found)])
    versions = sorted({f"{name} {version}" for one in found for name, version in one["versions"].items()})
    return "\n\n".join(["## Tightness of bounds", _HOW, table, _verdict(found), ", ".join(versions) + "."])


def _row(dataset: Dataset, one: Mapping[str, Any]) -> list[str]:
    scores = [_score(dataset, one[kind]["score"]) for kind in ("experts", "data")]
    change = f"{_gain(one):.2g} ± {one['noise']:.2g}"
    return [f"{dataset.label}, {dataset.metric.label}", *_bounds(one), *scores, change]


def _medians(results: Sequence[Mapping[str, Any]]) -> list[str]:
    experts, data = _median_tightness(results)
    widths = median(one["data"]["width"] / one["experts"]["width"] for one in results)
    cells = [f"{experts:.3f}", f"{data:.3f}", f"{data / experts:.2f}", f"{widths:.2f}"]
    return ["median", *(f"**{cell}**" for cell in cells), "", "", ""]


def _median_tightness(results: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    experts, data = (median(one[kind]["tightness"] for one in results) for kind in ("experts", "data"))
    return experts, data


def _bounds(one: Mapping[str, Any]) -> list[str]:
    experts, data = one["experts"], one["data"]
    ratio, width = data["tightness"] / experts["tightness"], data["width"] / experts["width"]
    return [f"{experts['tightness']:.3f}", f"{data['tightness']:.3f}", f"{ratio:.2f}", f"{width:.2f}"]


def _score(dataset: Dataset, score: float) -> str:
    return four_digits(score) if dataset.metric.is_lower_better else f"{score:.4f}"


def _gain(one: Mapping[str, Any]) -> float:
    """Return by how much the score is better with the bounds of the data."""
    change = float(one["data"]["score"] - one["experts"]["score"])
    return -change if dataset_named(one["table"]).metric.is_lower_better else change


def _loss(one: Mapping[str, Any]) -> str:
    """Return the table, and by which share of the error the score is worse."""
    dataset = dataset_named(one["table"])
    share = -_gain(one) / dataset.metric.error(one["experts"]["score"])
    return f"{dataset.label} (by {100 * share:.1g} % of the error)"


def _verdict(results: Sequence[Mapping[str, Any]]) -> str:
    experts, data = _median_tightness(results)
    ratio = median(one["data"]["tightness"] / one["experts"]["tightness"] for one in results)
    worse = [_loss(one) for one in results if _gain(one) < -2 * one["noise"]]
    scores = f"worse by more than two standard errors on {', '.join(worse)}" if worse else "nowhere clearly worse"
    return (
        f"On {counted(len(results), 'table')}, the median tightness is {data / experts:.2f} times that of the experts' "
        f"bounds; the median of the ratios is {ratio:.2f}, since a tightness is at most 1. Scores are {scores}."
    )
