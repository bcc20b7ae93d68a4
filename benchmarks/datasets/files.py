"""Find and read tables: Parquet files, or the original files of NODE-GAM's data release.

``docs/data.md`` says where to get them.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nae.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FOLDER", "PLACES", "Table", "find", "folder_of_tables", "read_table"]

FOLDER = "NAE_DATA"
TARGET = "target"

PLACES: dict[str, tuple[str, ...]] = {
    "income": ("adult/adult.data",),
    "credit": ("credit/creditcard.csv", "credit/credit/creditcard.csv"),
    "year": ("YEAR/data.csv", "year/YearPredictionMSD.txt"),
    "mimic2": ("mimic2/mimic2.data",),
    "mimic3": ("mimic3/adult_icu.gz",),
}
"""Files of the release below the folder of tables. If there are two names, the paper's code uses the second."""

INCOME_COLUMNS = (
    "Age", "WorkClass", "fnlwgt", "Education", "EducationNum", "MaritalStatus", "Occupation", "Relationship", "Race",
    "Gender", "CapitalGain", "CapitalLoss", "HoursPerWeek", "NativeCountry",
)  # fmt: skip
MIMIC2_COLUMNS = (
    "Age", "GCS", "SBP", "HR", "Temperature", "PFratio", "Renal", "Urea", "WBC", "CO2", "Na", "K", "Bilirubin",
    "AdmissionType", "AIDS", "MetastaticCancer", "Lymphoma",
)  # fmt: skip
MIMIC2_CATEGORIES = ("GCS", "Temperature", "AdmissionType", "AIDS", "MetastaticCancer", "Lymphoma", "Renal")
MIMIC3_TARGET = "mort_icu"
_VITALS = ("heartrate", "sysbp", "diasbp", "meanbp", "resprate", "tempc", "spo2", "glucose")
MIMIC3_COLUMNS = (
    "age", "first_hosp_stay", "first_icu_stay", "adult_icu",
    *(f"eth_{name}" for name in ("asian", "black", "hispanic", "other", "white")),
    *(f"admType_{name}" for name in ("ELECTIVE", "EMERGENCY", "NEWBORN", "URGENT")),
    *(f"{vital}_{which}" for vital in _VITALS for which in ("min", "max", "mean")),
    "aniongap", "albumin", "bicarbonate", "bilirubin", "creatinine", "chloride", "glucose", "hematocrit", "hemoglobin",
    "lactate", "magnesium", "phosphate", "platelet", "potassium", "ptt", "inr", "pt", "sodium", "bun", "wbc",
)  # fmt: skip
N_YEAR_FEATURES = 90


@dataclass(frozen=True, eq=False)
class Table:
    """The features and the target of all rows, in the order of the file."""

    X: "pd.DataFrame"
    y: NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)


def folder_of_tables() -> Path:
    """Return the folder that the environment variable names."""
    given = os.environ.get(FOLDER)
    if not given:
        raise ConfigError(f"{FOLDER} must name the folder of the suite's Parquet files; it is not set.")
    return Path(given)


def find(name: str, folder: Path) -> Path | None:
    """Return the file of a table: that of the release, else a Parquet file, or None if there is neither."""
    paths = [folder / place for place in (*PLACES.get(name, ()), f"{name}.parquet")]
    return next((path for path in paths if path.exists()), None)


def read_table(name: str, folder: Path) -> Table:
    """Read a table from a folder."""
    path = find(name, folder)
    if path is None:
        wanted = " or ".join((f"{name}.parquet", *PLACES.get(name, ())))
        raise DataError(f"{FOLDER} must name a folder that holds {wanted}; {folder} does not.")
    if path.suffix == ".parquet":
        return _read_parquet(path)
    return {
        "income": _read_income,
        "credit": _read_credit,
        "year": _read_year,
        "mimic2": _read_mimic2,
        "mimic3": _read_mimic3,
    }[name](path)


def _read_parquet(path: Path) -> Table:
    import pandas as pd

    table = pd.read_parquet(path)
    if TARGET not in table:
        raise DataError(f"{path.name} must have a column {TARGET!r}; it has {list(table.columns)[:8]}.")
    y = table.pop(TARGET).to_numpy()
    return Table(table, y)


def _read_income(path: Path) -> Table:
    import pandas as pd

    table = pd.read_csv(path, header=None, skipinitialspace=True)
    _check_width(path, table, len(INCOME_COLUMNS) + 1)
    table.columns = pd.Index([*INCOME_COLUMNS, TARGET])
    y = table.pop(TARGET)
    if not y.isin([">50K", "<=50K"]).all():
        raise DataError(f"The last column of {path.name} must be '>50K' or '<=50K'; it has {sorted(set(y))[:4]}.")
    return Table(_with_numbers_as_floats(table), (y == ">50K").to_numpy(np.int64))


def _read_credit(path: Path) -> Table:
    import pandas as pd

    table = pd.read_csv(path)
    if table.columns[-1] != "Class":
        raise DataError(f"The last column of {path.name} must be 'Class'; it is {table.columns[-1]!r}.")
    y = table.pop("Class").to_numpy(np.int64)
    return Table(_with_numbers_as_floats(table), y)


def _read_year(path: Path) -> Table:
    import pandas as pd

    table = pd.read_csv(path, header=None, dtype=np.float32)
    _check_width(path, table, N_YEAR_FEATURES + 1)
    X = table.iloc[:, 1:].set_axis([f"timbre{i}" for i in range(N_YEAR_FEATURES)], axis=1)
    return Table(X.astype(np.float64), table[0].to_numpy(np.float64))


def _read_mimic2(path: Path) -> Table:
    import pandas as pd

    table = pd.read_csv(path, sep=r"\s+", header=None)
    _check_width(path, table, len(MIMIC2_COLUMNS) + 1)
    table.columns = pd.Index([*MIMIC2_COLUMNS, TARGET])
    y = table.pop(TARGET).to_numpy(np.int64)
    levels = {name: table[name].astype(str) for name in MIMIC2_CATEGORIES}
    return Table(_with_numbers_as_floats(table.assign(**levels)), y)


def _read_mimic3(path: Path) -> Table:
    import pandas as pd

    table = pd.read_csv(path, compression="gzip")
    absent = [name for name in (*MIMIC3_COLUMNS, MIMIC3_TARGET) if name not in table]
    if absent:
        raise DataError(f"{path.name} must have the columns of the release; it lacks {absent[:8]}.")
    return Table(_with_numbers_as_floats(table[list(MIMIC3_COLUMNS)]), table[MIMIC3_TARGET].to_numpy(np.int64))


def _check_width(path: Path, table: "pd.DataFrame", width: int) -> None:
    if table.shape[1] != width:
        raise DataError(f"{path.name} must have {width} columns and no header; it has {table.shape[1]}.")


def _with_numbers_as_floats(table: "pd.DataFrame") -> "pd.DataFrame":
    return table.astype({name: np.float64 for name in table.columns if table[name].dtype.kind in "biuf"})
