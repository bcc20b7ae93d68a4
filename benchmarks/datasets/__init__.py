"""The tables of the suite: what they are, how they are read and how their rows are divided."""

from benchmarks.datasets.leave_one_out import LeaveOneOut, encode_categories
from benchmarks.datasets.reading import Part, Split, load, split
from benchmarks.datasets.registry import DATASETS, METRICS, Dataset, Metric, Task, dataset_named

__all__ = [
    "DATASETS",
    "METRICS",
    "Dataset",
    "LeaveOneOut",
    "Metric",
    "Part",
    "Split",
    "Task",
    "dataset_named",
    "encode_categories",
    "load",
    "split",
]
