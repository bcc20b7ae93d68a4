import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks.datasets import Dataset, Part, Split, Task
from benchmarks.scores import influence, score, standard_error
from benchmarks.store import Report
from tests.benchmarks.generated import make_split, make_table


def split_of(task: Task, y: np.ndarray) -> Split:
    """Return a split whose test rows have these targets."""
    X, _ = make_table("regression", len(y))
    part = Part(X, y)
    return Split(Dataset("generated", task, "Generated"), part, part, part, n_classes=0 if task == "regression" else 2)


def test_scores_are_those_of_the_task() -> None:
    blank = Report("generated", "perfect", "done")
    numbers, classes = make_split("regression"), make_split("multiclass")
    assert score(blank, numbers, numbers.test.y + 3.0).rmse == pytest.approx(3.0)
    found = score(blank, classes, np.eye(3)[classes.test.y])
    assert found.accuracy == 1.0
    assert found.log_loss == pytest.approx(0, abs=1e-9)
    two = make_split("binary")
    assert score(blank, two, np.column_stack([two.test.y, 1 - two.test.y]) * 0.5 + 0.25).auc == 0.0


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_the_standard_error_is_that_of_resampled_rows(task: Task) -> None:
    random = np.random.default_rng(0)
    n = 1000
    y = random.normal(size=n) if task == "regression" else random.integers(0, 2, n)
    predictions = []
    for noise in (1.0, 1.3):
        value = y + noise * random.normal(size=n)
        predictions.append(value if task == "regression" else np.column_stack([0.5 - value, value - 0.5]))
    whole = split_of(task, y)
    found = standard_error(*(influence(whole, predicted) for predicted in predictions))

    def error(rows: np.ndarray, predicted: np.ndarray) -> float:
        if task == "regression":
            return float(np.sqrt(np.mean((predicted[rows] - y[rows]) ** 2)))
        if task == "binary":
            return 1 - float(roc_auc_score(y[rows], predicted[rows, 1]))
        return float(np.mean(predicted[rows].argmax(axis=1) != y[rows]))

    draws = [random.integers(0, n, n) for _ in range(200)]
    gaps = [error(rows, predictions[0]) - error(rows, predictions[1]) for rows in draws]
    assert found == pytest.approx(np.std(gaps), rel=0.25)


def test_a_model_does_not_differ_from_itself() -> None:
    split = make_split("binary")
    found = influence(split, np.column_stack([1 - split.test.y, split.test.y]) * 0.5 + 0.25)
    assert standard_error(found, found) == 0
