"""How often drift is called where there is none: samples of held-out rows of the same table.

    NAE_DATA=folder python -m benchmarks.drift_alarms

A model is fitted to half of the rows of a table. Samples of the other half have not drifted. The page,
``benchmarks/results/drift_alarms.md``, says how many samples were called drifted or moved, and how many have a feature
whose population stability index (PSI) exceeds 0.2 all the same.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets.files import folder_of_tables, read_table
from benchmarks.machine import describe
from benchmarks.tables import markdown_table
from nae import NAEClassifier, NAERegressor, TableModel
from nae.monitoring import LEVEL, LIMIT

RESULT = Path(__file__).parent / "results" / "drift_alarms.md"
TABLES = ("telco_churn", "bank_marketing", "ames", "income", "bemtpl97")
SIZES = (30, 100, 300, 1000)
N_SAMPLES = 200
MOST_ROWS = 20_000


def main() -> None:
    """Measure all tables, and write the page."""
    rows = [[name, *cells] for name in TABLES for cells in alarms(name)]
    header = ["table", "features", "new rows", "drifted", "moved", "PSI over 0.2 in some feature"]
    most = LEVEL * N_SAMPLES
    text = f"""# False alarms of drift

Models fitted to half of a table, and {N_SAMPLES} samples of the other half for every number of new rows: none has
drifted. The limit is {LIMIT}, and the level {LEVEL}: at most {most:g} of {N_SAMPLES} should be called drifted or moved.
The PSI alone exceeds the limit by chance in few rows.

{markdown_table(header, rows)}

{describe()}; `python -m benchmarks.drift_alarms`.
"""
    RESULT.write_text(text)
    print(text)


def alarms(name: str) -> list[list[str]]:
    """Return a line per number of new rows."""
    model, others = fitted(name)
    return [[f"{model.n_features}", f"{size:,}", *counts(model, others, size)] for size in SIZES]


def fitted(name: str) -> tuple[TableModel, Any]:
    """Return a model of half of the rows, and the other half."""
    table = read_table(name, folder_of_tables())
    order = np.random.default_rng(0).permutation(len(table.y))[:MOST_ROWS]
    half = len(order) // 2
    kind = NAEClassifier if len(np.unique(table.y)) == 2 else NAERegressor
    model = kind(random_state=0, n_members=2, max_epochs=20)
    model.fit(table.X.iloc[order[:half]], table.y[order[:half]])
    return model.model_, table.X.iloc[order[half:]]


def counts(model: TableModel, others: Any, size: int) -> list[str]:
    """Return how many samples were called drifted or moved, and how many have a large index."""
    random = np.random.default_rng(size)
    found: Counter[str] = Counter()
    for _ in range(N_SAMPLES):
        drift = model.drift(others.iloc[random.choice(len(others), size, replace=False)])
        found[drift.verdict] += 1
        found["index"] += max(one["values"].size for one in drift) > LIMIT
    return [f"{found[word]}" for word in ("drifted", "moved", "index")]


if __name__ == "__main__":
    main()
