"""The paper's six tables, their splits and their scores.

Four tables are split by files of NODE-GAM's release, ``train0.txt`` … ``test4.txt``, with one row number per line. If
these files are missing, stratified folds are drawn with seed 0, and the result says so.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.datasets.download import download_housing, download_income
from benchmarks.datasets.files import PLACES, Table, find, folder_of_tables, read_table
from benchmarks.datasets.reading import Rows, Split, divide, split
from benchmarks.datasets.registry import METRICS, Dataset, Metric, dataset_named
from nae.errors import ConfigError, DataError, did_you_mean

__all__ = [
    "PROTOCOLS",
    "PaperSplit",
    "Protocol",
    "Statistics",
    "load_paper",
    "protocol_named",
    "read_paper",
    "statistics",
]

SEED = 0
"""Random seed for folds and validation rows that no file defines."""
VALIDATION_SHARE = 0.2
"""Share of validation rows among the training rows of a fold, and of Year, as in the paper's code."""
DOWNLOADS = {"housing": download_housing, "income": download_income}


@dataclass(frozen=True)
class Protocol:
    """How the paper uses a table, and what it states about the table."""

    dataset: Dataset
    repeats: Literal["fold", "seed"]
    """What differs between runs: the rows, or only the seed of the model."""
    n_repeats: int
    n_rows: int
    """Number of rows. This entry and the next two are the paper's counts."""
    n_features: int
    n_categories: int
    metric: Metric
    note: str = ""
    """A note that readers need to interpret the scores."""


@dataclass(frozen=True, eq=False)
class PaperSplit:
    """The rows of one run."""

    split: Split
    is_original: bool
    """Whether the split into training and test rows is the paper's."""
    division: str
    """How the rows were split, in words."""


@dataclass(frozen=True)
class Statistics:
    """The statistics of a table."""

    n_rows: int
    n_features: int
    n_categories: int
    missing_share: float
    """The share of missing values among all cells."""
    target: str
    """Mean and standard deviation of the target; or the number of classes, and the share of the last one."""


_MSE = Metric("mse", "MSE", is_lower_better=True)
_SAMPLE = (
    "a sample of Credit: all 492 frauds and 4,920 of the 284,315 other rows, so that 9.1 % are frauds instead of "
    "0.17 %; its scores say nothing about Credit's"
)


def _protocol(
    name: str,
    repeats: Literal["fold", "seed"],
    shape: tuple[int, int, int],
    metric: Metric | None = None,
    note: str = "",
) -> Protocol:
    dataset = dataset_named(name)
    n_repeats = 5 if repeats == "fold" else 10
    return Protocol(dataset, repeats, n_repeats, *shape, metric=metric or METRICS[dataset.task], note=note)


PROTOCOLS: tuple[Protocol, ...] = (
    _protocol("housing", "seed", (20_640, 8, 0)),
    _protocol("mimic2", "fold", (24_508, 17, 7)),
    _protocol("mimic3", "fold", (27_348, 57, 0)),
    _protocol("income", "fold", (32_561, 14, 8)),
    _protocol("credit", "fold", (284_807, 30, 0)),
    _protocol("year", "seed", (515_345, 90, 0), metric=_MSE),
    _protocol("credit_sample5412", "fold", (5412, 30, 0), note=_SAMPLE),
)
"""The paper's tables in its order, then the sample that replaces Credit where that table is not available."""


def protocol_named(name: str) -> Protocol:
    """Return the protocol of a table."""
    for protocol in PROTOCOLS:
        if protocol.dataset.name == name:
            return protocol
    known = [protocol.dataset.name for protocol in PROTOCOLS]
    raise ConfigError(f"A table of the paper must be one of {known}; got {name!r}.{did_you_mean(name, known)}")


def read_paper(protocol: Protocol, folder: Path | None = None) -> Table:
    """Return all rows of a table. Housing and Income are downloaded if they are in no folder."""
    name = protocol.dataset.name
    download = DOWNLOADS.get(name)
    if download is None:
        return read_table(name, folder or folder_of_tables())
    given = _folder_or_none(folder)
    return download() if given is None or find(name, given) is None else read_table(name, given)


def load_paper(
    protocol: Protocol, fold: int = 0, *, folder: Path | None = None, validation_seed: int = SEED
) -> PaperSplit:
    """Return the rows of one run, split like in the paper. Tables with a single split ignore ``fold``."""
    if protocol.repeats == "fold" and not 0 <= fold < protocol.n_repeats:
        raise ConfigError(f"A fold must be in [0, {protocol.n_repeats - 1}]; got {fold}.")
    table = read_paper(protocol, folder)
    if protocol.dataset.name == "year":
        return _divide_year(protocol, table, folder)
    if protocol.repeats == "seed":
        whole = split(protocol.dataset, table.X, table.y)
        return PaperSplit(whole, True, "the paper's: a fifth to test, an eighth of the rest to validate, seed 0")
    files = _index_folder(protocol, f"train{fold}.txt", folder)
    if files is None:
        rest, test = _draw_fold(table, fold, protocol.n_repeats)
        division = f"{protocol.n_repeats} stratified folds, seed {SEED}: the original folds are not at hand"
    else:
        rest, test = (_read_rows(files / f"{part}{fold}.txt", len(table)) for part in ("train", "test"))
        division = "the folds of NODE-GAM's release"
        _check_disjoint(files, rest, test)
    train, validation = _draw_validation(table, rest, protocol, validation_seed)
    divided = divide(protocol.dataset, table.X, table.y, rows=(train, validation, test))
    return PaperSplit(divided, files is not None, division)


def statistics(protocol: Protocol, table: Table) -> Statistics:
    """Return the statistics of a table."""
    X, y = table.X, table.y
    if protocol.dataset.task == "regression":
        target = f"{y.mean():.3g} ± {y.std():.3g}"
    else:
        labels, counts = np.unique(y, return_counts=True)
        target = f"{len(labels)} classes, {100 * counts[-1] / len(y):.3g} % are {labels[-1]}"
    n_categories = sum(X[name].dtype.kind not in "biuf" for name in X.columns)
    return Statistics(len(y), X.shape[1], n_categories, float(X.isna().to_numpy().mean()), target)


def _divide_year(protocol: Protocol, table: Table, folder: Path | None) -> PaperSplit:
    """Return the rows of Year. The publisher's last 51,630 rows are test rows; the release lists validation rows."""
    n_leading = protocol.dataset.n_leading_train or 0
    if len(table) <= n_leading:
        raise DataError(f"year must have more than {n_leading:,} rows; it has {len(table):,}.")
    rest, test = np.arange(n_leading), np.arange(n_leading, len(table))
    files = _index_folder(protocol, "stratified_train_idx.txt", folder)
    if files is None:
        train, validation = _draw_validation(table, rest, protocol, SEED)
        division = f"the publisher's test rows; a fifth of the rest to validate, seed {SEED}"
    else:
        train, validation = (_read_rows(files / f"stratified_{part}_idx.txt", n_leading) for part in ("train", "valid"))
        division = "the publisher's test rows; the validation rows of NODE's release"
        _check_disjoint(files, train, validation)
    divided = divide(protocol.dataset, table.X, table.y, rows=(train, validation, test))
    return PaperSplit(divided, files is not None, division)


def _draw_fold(table: Table, fold: int, n_folds: int) -> tuple[Rows, Rows]:
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(n_folds, shuffle=True, random_state=SEED).split(table.X, table.y)
    rest, test = list(folds)[fold]
    return rest, test


def _draw_validation(table: Table, rows: Rows, protocol: Protocol, seed: int) -> tuple[Rows, Rows]:
    from sklearn.model_selection import train_test_split

    strata = None if protocol.dataset.task == "regression" else table.y[rows]
    train, validation = train_test_split(rows, test_size=VALIDATION_SHARE, random_state=seed, stratify=strata)
    return train, validation


def _index_folder(protocol: Protocol, file: str, folder: Path | None) -> Path | None:
    """Return the folder that holds the release's row numbers, if there is one."""
    given = _folder_or_none(folder)
    if given is None:
        return None
    folders = [(given / place).parent for place in PLACES.get(protocol.dataset.name, ())]
    return next((each for each in folders if (each / file).exists()), None)


def _folder_or_none(folder: Path | None) -> Path | None:
    try:
        return folder or folder_of_tables()
    except ConfigError:
        return None


def _read_rows(path: Path, n_rows: int) -> Rows:
    if not path.exists():
        raise DataError(f"Folds must have both files of row numbers; {path.name} is not in {path.parent}.")
    rows = np.loadtxt(path, dtype=np.intp, ndmin=1)
    if len(rows) == 0 or rows.min() < 0 or rows.max() >= n_rows:
        raise DataError(f"Row numbers in {path.name} must be in [0, {n_rows - 1}]; the table has {n_rows:,} rows.")
    return rows


def _check_disjoint(folder: Path, first: Rows, second: Rows) -> None:
    n_shared = len(np.intersect1d(first, second))
    if n_shared:
        raise DataError(f"Files of row numbers in {folder} must share no row; they share {n_shared:,}.")
