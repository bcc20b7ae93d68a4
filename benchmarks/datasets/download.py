"""Download Housing and Income with scikit-learn, in the form of the files that the suite reads."""

import numpy as np

from benchmarks.datasets.files import INCOME_COLUMNS, Table
from nae.errors import DataError

__all__ = ["download_housing", "download_income"]

N_INCOME_ROWS = 32_561
"""Number of rows of ``adult.data``. In OpenML's table, they follow the rows of ``adult.test``."""
FIRST_INCOME_ROW = (39.0, "State-gov", 77_516.0)
"""The first row of ``adult.data``: age, class of work, weight."""


def download_housing() -> Table:
    """Return the California housing table. scikit-learn keeps a copy in the home folder."""
    from sklearn.datasets import fetch_california_housing

    found = fetch_california_housing(as_frame=True)
    return Table(found.data.astype(np.float64), found.target.to_numpy(np.float64))


def download_income() -> Table:
    """Return the rows of ``adult.data`` from OpenML. scikit-learn keeps a copy in the home folder."""
    from sklearn.datasets import fetch_openml

    found = fetch_openml("adult", version=2, as_frame=True, parser="auto")
    X = found.data.tail(N_INCOME_ROWS).reset_index(drop=True).set_axis(list(INCOME_COLUMNS), axis=1)
    levels = [name for name in X.columns if X[name].dtype.kind not in "biuf"]
    # The file writes missing values as '?'; OpenML has them as missing.
    X = X.assign(**{name: X[name].astype(object).where(X[name].notna(), "?") for name in levels})
    X = X.astype({name: np.float64 for name in X.columns if name not in levels})
    if tuple(X.iloc[0][["Age", "WorkClass", "fnlwgt"]]) != FIRST_INCOME_ROW:
        raise DataError(
            f"OpenML's 'adult' must end with the rows of adult.data, whose first is {FIRST_INCOME_ROW}; its order has "
            "changed. Place adult/adult.data in the folder of tables."
        )
    y = found.target.tail(N_INCOME_ROWS).astype(str).str.strip()
    return Table(X, (y == ">50K").to_numpy(np.int64))
