"""The tables of the suite, in ascending order of cost."""

from dataclasses import dataclass
from typing import Literal

from nae.errors import ConfigError, did_you_mean

__all__ = ["DATASETS", "METRICS", "OTHERS", "Dataset", "Metric", "Task", "dataset_named"]

Task = Literal["regression", "binary", "multiclass"]


@dataclass(frozen=True)
class Metric:
    """The score by which models are ranked."""

    name: str
    """The field of a report that holds the score."""
    label: str
    is_lower_better: bool

    def error(self, score: float) -> float:
        """Return the score as an error: 0 is perfect, and ratios are meaningful."""
        return score if self.is_lower_better else 1.0 - score


METRICS: dict[Task, Metric] = {
    "regression": Metric("rmse", "RMSE", is_lower_better=True),
    "binary": Metric("auc", "AUC", is_lower_better=False),
    "multiclass": Metric("accuracy", "accuracy", is_lower_better=False),
}


@dataclass(frozen=True)
class Dataset:
    """One table: a Parquet file whose last column is called ``target``."""

    name: str
    task: Task
    label: str
    n_leading_train: int | None = None
    """Rows of the publisher's training file, if the split is the publisher's. The other rows are for testing."""

    @property
    def metric(self) -> Metric:
        """The score by which models are ranked on the table."""
        return METRICS[self.task]


DATASETS: tuple[Dataset, ...] = (
    Dataset("concrete", "regression", "Concrete"),
    Dataset("telco_churn", "binary", "Telco churn"),
    Dataset("compas", "binary", "COMPAS"),
    Dataset("credit_sample5412", "binary", "Credit (sample)"),
    Dataset("ames", "regression", "Ames"),
    Dataset("magic", "binary", "Magic"),
    Dataset("bike_hour", "regression", "Bike (hours)"),
    Dataset("housing", "regression", "Housing"),
    Dataset("income", "binary", "Income"),
    Dataset("bank_marketing", "binary", "Bank marketing"),
    Dataset("protein", "regression", "Protein"),
    Dataset("diamonds", "regression", "Diamonds"),
    Dataset("letter", "multiclass", "Letter"),
    Dataset("blog_feedback", "regression", "Blog feedback", n_leading_train=52_397),
    Dataset("beijing_air", "regression", "Beijing air"),
)

"""The tables of the suite."""

OTHERS: tuple[Dataset, ...] = (
    Dataset("mimic2", "binary", "MIMIC-II"),
    Dataset("mimic3", "binary", "MIMIC-III"),
    Dataset("credit", "binary", "Credit"),
    Dataset("year", "regression", "Year", n_leading_train=463_715),
)
"""Tables of the paper that users must provide. The suite runs them only on request."""


def dataset_named(name: str) -> Dataset:
    """Return the table with the given name."""
    for dataset in (*DATASETS, *OTHERS):
        if dataset.name == name:
            return dataset
    known = [dataset.name for dataset in (*DATASETS, *OTHERS)]
    raise ConfigError(f"A data set must be one of the {len(known)} known; got {name!r}.{did_you_mean(name, known)}")
