"""Whether calibrating a classifier's score helps: log loss on validation rows, with and without.

    NAE_DATA=folder python -m benchmarks.calibration

Every table with classes is split several ways. A model is fitted to the training rows twice, the second time with
``calibrate=True``; both are measured on the validation rows, which no fit has seen. The test rows are never looked at.
The page is ``benchmarks/results/calibration.md``.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import DATASETS, load
from benchmarks.machine import describe
from benchmarks.tables import markdown_table
from nae import NAEClassifier
from nae._words import counted
from nae.quality.formulas import log_loss
from nae.quality.rows import read_rows

RESULT = Path(__file__).parent / "results" / "calibration.md"


@dataclass(frozen=True)
class Outcome:
    """One split of one table."""

    table: str
    slope: float
    gain: float  # on rows that members held out
    gain_error: float
    loss: float  # of the model without calibration, on validation rows
    change: float  # by how much calibration changes that loss
    change_error: float

    @property
    def is_kept(self) -> bool:
        """Whether ``calibrate='auto'`` keeps the slope."""
        return self.gain > self.gain_error


def main() -> None:
    """Measure all tables, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tables", nargs="*", default=[one.name for one in DATASETS if one.task != "regression"])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5000, help="training rows, at most")
    given = parser.parse_args()
    found = [outcome(name, split, given.rows) for name in given.tables for split in range(given.splits)]
    RESULT.write_text(page(found, given.rows))
    print(RESULT.read_text())


def outcome(name: str, seed: int, most_rows: int) -> Outcome:
    """Fit twice, and measure both models on validation rows."""
    dataset = next(one for one in DATASETS if one.name == name)
    split = load(dataset, seed=seed)
    X, y = split.train.X[:most_rows], np.asarray(split.train.y)[:most_rows]
    plain, scaled = (NAEClassifier(random_state=seed, calibrate=each).fit(X, y) for each in (False, True))
    entry: Any = scaled.model_.training.calibration
    losses = [losses_of(model, split.validation.X, np.asarray(split.validation.y)) for model in (plain, scaled)]
    change = losses[1] - losses[0]
    error = float(change.std() / np.sqrt(len(change)))
    found = Outcome(
        name,
        entry["slope"],
        entry["gain"],
        entry["standard_error"],
        float(losses[0].mean()),
        float(change.mean()),
        error,
    )
    print(found, flush=True)
    return found


def losses_of(model: Any, X: Any, y: Any) -> Any:
    """Return the log loss of every row."""
    rows = read_rows(model, X, y, None, None)
    return log_loss(rows.codes, rows.predict())


def page(found: list[Outcome], most_rows: int) -> str:
    """Return the page with the results."""
    header = ["table", "slope", "gain on held-out rows", "kept by auto", "log loss", "change by calibration"]
    rows = [
        [
            one.table,
            f"{one.slope:.3f}",
            f"{one.gain:+.5f} ± {one.gain_error:.5f}",
            "yes" if one.is_kept else "no",
            f"{one.loss:.4f}",
            f"{one.change:+.5f} ± {one.change_error:.5f}",
        ]
        for one in found
    ]
    better = sum(one.change < -2 * one.change_error for one in found)
    worse = sum(one.change > 2 * one.change_error for one in found)
    kept = [one for one in found if one.is_kept]
    mean = float(np.mean([one.change / one.loss for one in found]))
    of_kept = float(np.mean([one.change / one.loss for one in kept])) if kept else 0.0
    auto = f"`calibrate='auto'` would keep the slope in {counted(len(kept), 'split')}"
    return f"""# Calibrating the score

The log loss of classifiers on validation rows, and how `calibrate=True` changes it; at most {most_rows:,} training
rows. Negative changes are improvements. Of {len(found)} splits, {better} improve and {worse} worsen by more than two
standard errors; in the mean, the loss changes by {100 * mean:+.2f} %. {auto}, where
the loss changes by {100 * of_kept:+.2f} % in the mean.

{markdown_table(header, rows)}

{describe()}; `python -m benchmarks.calibration`.
"""


if __name__ == "__main__":
    main()
