"""The tables of the suite and of the paper: their descriptions, how to read them, and how to split their rows."""

from benchmarks.datasets.files import folder_of_tables
from benchmarks.datasets.leave_one_out import LeaveOneOut, encode_categories
from benchmarks.datasets.protocol import (
    PROTOCOLS,
    PaperSplit,
    Protocol,
    Statistics,
    load_paper,
    protocol_named,
    read_paper,
    statistics,
)
from benchmarks.datasets.reading import Part, Split, load, split
from benchmarks.datasets.registry import DATASETS, METRICS, OTHERS, Dataset, Metric, Task, dataset_named

__all__ = [
    "DATASETS",
    "METRICS",
    "OTHERS",
    "PROTOCOLS",
    "Dataset",
    "LeaveOneOut",
    "Metric",
    "PaperSplit",
    "Part",
    "Protocol",
    "Split",
    "Statistics",
    "Task",
    "dataset_named",
    "encode_categories",
    "folder_of_tables",
    "load",
    "load_paper",
    "protocol_named",
    "read_paper",
    "split",
    "statistics",
]
