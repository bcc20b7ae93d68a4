"""What is promised of which table, and the rows that each promise is fitted on and attacked with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from benchmarks.datasets import Dataset, Split, Task, dataset_named, folder_of_tables, split
from benchmarks.datasets.files import read_table
from benchmarks.datasets.reading import Part
from nae.errors import ConfigError, did_you_mean

__all__ = ["CASES", "Case", "Loss", "case_named", "load_case"]

Loss = Literal["default", "quantile", "poisson"]

LEVEL = 0.9
"""The level of quantile models."""


@dataclass(frozen=True)
class Case:
    """A table, the directions that are promised, and the loss of the model."""

    name: str
    label: str
    table: str
    signs: Mapping[str, int]
    loss: Loss = "default"
    task: Task = "regression"
    exposure: str = ""
    """The column that holds the exposure of each row. The target is then a rate, and the exposure its weight."""
    most_rows: int | None = None
    """The number of rows drawn from the table. If None, all."""

    @property
    def promise(self) -> str:
        """The directions in words, such as 'MedInc +, AveOccup −'."""
        return ", ".join(f"{name} {'+' if sign > 0 else '−'}" for name, sign in self.signs.items())


HOUSING = {"MedInc": 1, "HouseAge": 1, "AveOccup": -1}

CASES: tuple[Case, ...] = (
    Case("housing", "Housing", "housing", HOUSING),
    Case("concrete", "Concrete", "concrete", {"Cement": 1, "Age": 1, "Water": -1}),
    Case("diamonds", "Diamonds", "diamonds", dict.fromkeys(("carat", "x", "y", "z"), 1)),
    Case("compas", "COMPAS", "compas", {"priors_count": 1}, task="binary"),
    Case("income", "Income", "income", {"EducationNum": 1, "CapitalGain": 1}, task="binary"),
    Case("quantile", "Housing, quantile 0.9", "housing", HOUSING, loss="quantile"),
    Case(
        "poisson",
        "Belgian motor, Poisson",
        "bemtpl97",
        {"bm": 1, "power": 1},
        loss="poisson",
        exposure="exposure",
        most_rows=40_000,
    ),
)


def case_named(name: str) -> Case:
    """Return the case with the given name."""
    for case in CASES:
        if case.name == name:
            return case
    known = [case.name for case in CASES]
    raise ConfigError(f"A case must be one of {known}; got {name!r}.{did_you_mean(name, known)}")


def load_case(case: Case, *, seed: int = 0) -> Split:
    """Read the table of a case, and split its rows as the suite does."""
    table = read_table(case.table, folder_of_tables())
    X, y = table.X, table.y
    if case.most_rows is not None:
        rows = np.random.default_rng(seed).permutation(len(y))[: case.most_rows]
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    found = split(_dataset(case), X, y, seed=seed)
    return found if not case.exposure else _as_rates(found, case.exposure)


def _dataset(case: Case) -> Dataset:
    try:
        return dataset_named(case.table)
    except ConfigError:
        return Dataset(case.table, case.task, case.label)


def _as_rates(whole: Split, exposure: str) -> Split:
    """Return counts as rates with the exposure as weight, which has the same Poisson likelihood as an offset."""

    def convert(part: Part) -> Part:
        share = part.X[exposure].to_numpy(dtype=np.float64)
        return Part(part.X.drop(columns=exposure), part.y / share, share)

    parts = {name: convert(getattr(whole, name)) for name in ("train", "validation", "test")}
    return replace(whole, **parts)
