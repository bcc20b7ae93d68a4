"""The tables of the paper's experiments, split by its protocol: real tables, simulations, and small substitutes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nae.datasets
from benchmarks.datasets import Dataset, Part, Split, dataset_named, load, load_paper, protocol_named, split
from benchmarks.datasets.files import find
from benchmarks.datasets.reading import FOLDER
from benchmarks.paper.runs import Run
from nae.errors import ConfigError

__all__ = ["COST_ROWS", "N_FOLDS", "SIMULATIONS", "SMOKE_FEATURES", "SMOKE_ROWS", "fold", "is_at_hand", "read"]

N_FOLDS = 5
SIMULATIONS: dict[str, Callable[..., tuple[dict[str, NDArray[Any]], NDArray[Any]]]] = {
    "unimodal": nae.datasets.unimodal,
    "multimodal": nae.datasets.multimodal,
    "modality": nae.datasets.modality,
    "correlated": nae.datasets.correlated,
    "generic": nae.datasets.generic,
}
COST_ROWS = 5000
SMOKE_ROWS = 400
SMOKE_FEATURES = 4


def is_at_hand(name: str) -> bool:
    """Whether a real table is in the folder of the environment variable, as Parquet or in NODE-GAM's release."""
    return _place(name) is not None


def _place(name: str) -> Path | None:
    given = os.environ.get(FOLDER)
    return find(name, Path(given)) if given else None


def read(run: Run) -> Split:
    """Return the rows of a run, split into three parts."""
    if run.data in SIMULATIONS:
        n_rows = SMOKE_ROWS if run.is_smoke else 10_000
        # Every seed also has its own rows, so that the spread over seeds is that of the whole experiment.
        X, y = SIMULATIONS[run.data](n_rows, seed=run.seed, **dict(run.options))
        return _split(Dataset(run.data, "regression", run.data.capitalize()), X, y)
    if run.data == "noise":
        n_features = int(dict(run.options)["n_features"] or 1)
        return _noise(SMOKE_ROWS, min(n_features, SMOKE_FEATURES)) if run.is_smoke else _noise(COST_ROWS, n_features)
    dataset = dataset_named(run.data)
    if run.is_smoke:
        whole = _stand_in(dataset)
        return whole if run.fold is None else fold(whole, run.fold)
    place = _place(run.data)
    if place is None or place.suffix != ".parquet":  # NODE-GAM's files, divided by its lists of rows, or a download
        return load_paper(protocol_named(run.data), run.fold or 0).split
    return load(dataset) if run.fold is None else fold(load(dataset), run.fold)


def fold(whole: Split, number: int) -> Split:
    """Return the split whose test rows are one of five stratified folds, drawn with seed 0."""
    from sklearn.model_selection import StratifiedKFold, train_test_split

    if not 0 <= number < N_FOLDS:
        raise ConfigError(f"A fold must be in [0, {N_FOLDS - 1}]; got {number}.")
    every = _joined(whole)
    folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(every.X, every.y))
    rest, test = folds[number]
    train, validation = train_test_split(rest, test_size=0.125, random_state=0, stratify=every.y[rest])

    def part(rows: NDArray[np.intp]) -> Part:
        return Part(every.X.iloc[rows].reset_index(drop=True), every.y[rows])

    return Split(whole.dataset, part(train), part(validation), part(test), whole.n_classes)


def _joined(whole: Split) -> Part:
    import pandas as pd

    parts = (whole.train, whole.validation, whole.test)
    X = pd.concat([part.X for part in parts], ignore_index=True)
    return Part(X, np.concatenate([part.y for part in parts]))


def _split(dataset: Dataset, X: dict[str, NDArray[Any]], y: NDArray[Any]) -> Split:
    import pandas as pd

    return split(dataset, pd.DataFrame(X), y)


def _noise(n_train: int, n_features: int) -> Split:
    """Return the rows on which the paper measures time: random numbers."""
    random = np.random.default_rng(0)
    X = random.standard_normal((round(n_train / 0.7), n_features))  # 0.7 of the rows are for training
    y = X[:, 0] + random.standard_normal(len(X))
    return _split(Dataset("noise", "regression", "Noise"), {f"x{i}": X[:, i] for i in range(n_features)}, y)


def _stand_in(dataset: Dataset) -> Split:
    """Return a few generated rows with the columns that the figures need."""
    random = np.random.default_rng(0)
    columns: dict[str, NDArray[Any]]
    if dataset.name == "housing":
        columns = {name: random.uniform(1, 9, SMOKE_ROWS) for name in ("MedInc", "AveRooms")}
        columns["Longitude"] = random.uniform(-124, -114, SMOKE_ROWS).round(2)
        columns["Latitude"] = random.uniform(32, 42, SMOKE_ROWS).round(2)
        y = columns["MedInc"] + np.sin(columns["Longitude"]) * np.cos(columns["Latitude"])
        y = y + random.standard_normal(SMOKE_ROWS)  # without noise, boosting would not stop
    else:
        columns = {"Age": random.integers(17, 80, SMOKE_ROWS).astype(float)}
        columns["Education"] = random.choice(["school", "college", "doctorate"], SMOKE_ROWS)
        y = columns["Age"] / 20 + (columns["Education"] == "doctorate") + random.standard_normal(SMOKE_ROWS)
    if dataset.task == "binary":
        y = (y > np.median(y)).astype(np.int64)
    return _split(dataset, columns, y)
