"""Whether ``encoder="mlp"``, the paper's own model, gives the paper's figure on its Housing table.

Run as a module::

    python -m benchmarks.paper_mode --data DIR --seeds 3 --device cuda --out runs/paper_housing.json

``DIR`` holds ``housing.parquet`` (target column last, called ``target``) or ``housing.npz``; ``--convert`` writes the
second from the first, for machines that cannot read Parquet. The paper reports an RMSE of 0.451 ± 0.002.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from nae import NAERegressor, __version__, metrics, presets

__all__ = ["Run", "Split", "Table", "convert", "main", "measure", "read_table", "report", "split"]

NAME = "housing"


@dataclass(frozen=True, eq=False)
class Table:
    """A table of numbers with its target."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    names: tuple[str, ...]

    def columns(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        """Return some rows as named columns."""
        return {name: self.X[rows, i] for i, name in enumerate(self.names)}


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers for training, validation and testing."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """What one seed gave."""

    seed: int
    rmse: float
    validation_rmse: float
    table_error: float
    additivity: float
    best_epoch: int
    n_epochs: int
    stopped: str
    seconds: float


def read_table(folder: Path) -> Table:
    """Return the table in ``folder``, from Parquet or, where that is not there, from ``.npz``."""
    parquet, arrays = folder / f"{NAME}.parquet", folder / f"{NAME}.npz"
    if arrays.exists():
        with np.load(arrays) as content:
            return Table(content["X"], content["y"], tuple(str(name) for name in content["names"]))
    if not parquet.exists():
        raise SystemExit(f"--data must hold {parquet.name} or {arrays.name}; {folder} holds neither.")
    import pandas as pd

    frame = pd.read_parquet(parquet)
    features = frame.drop(columns="target")
    return Table(features.to_numpy(np.float64), frame["target"].to_numpy(np.float64), tuple(features.columns))


def convert(table: Table, path: Path) -> None:
    """Write a table as ``.npz``: X, y and names, which numpy alone can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, X=table.X, y=table.y, names=np.array(table.names))


def split(n_rows: int) -> Split:
    """Return the paper's split: a fifth for testing, an eighth of the rest for validation."""
    rest, test = train_test_split(np.arange(n_rows), test_size=0.2, random_state=0)
    train, validation = train_test_split(rest, test_size=0.125, random_state=0)
    return Split(train, validation, test)


def measure(table: Table, rows: Split, parameters: dict[str, Any], *, seed: int, device: str) -> Run:
    """Return what the model of one seed gives."""
    model = NAERegressor(**parameters, random_state=seed, device=device)
    train, validation, test = (table.columns(part) for part in (rows.train, rows.validation, rows.test))
    started = time.perf_counter()
    model.fit(train, table.y[rows.train], eval_set=(validation, table.y[rows.validation]))
    seconds = time.perf_counter() - started
    return Run(
        seed=seed,
        rmse=_rmse(model.predict(test), table.y[rows.test]),
        validation_rmse=_rmse(model.predict(validation), table.y[rows.validation]),
        table_error=model.table_error_,
        additivity=float(metrics.additivity(model, train)),
        best_epoch=model.history_.best_epoch,
        n_epochs=len(model.history_),
        stopped=model.history_.stopped,
        seconds=seconds,
    )


def report(runs: list[Run], parameters: dict[str, Any], device: str) -> dict[str, Any]:
    """Return the runs and their mean as JSON values."""
    errors = np.array([run.rmse for run in runs])
    return {
        "version": __version__,
        "table": NAME,
        "device": device,
        "parameters": parameters,
        "rmse_mean": float(errors.mean()),
        "rmse_sd": float(errors.std(ddof=1)) if len(errors) > 1 else 0.0,
        "table_error": max(run.table_error for run in runs),
        "seconds": sum(run.seconds for run in runs),
        "runs": [asdict(run) for run in runs],
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write."""
    options = _parse(arguments)
    table = read_table(options.data)
    if options.convert is not None:
        convert(table, options.convert)
        print(f"wrote {options.convert}")
        return
    parameters = presets.paper(NAME)
    if options.max_epochs is not None:
        parameters |= {"max_epochs": options.max_epochs, "early_stopping_rounds": max(1, options.max_epochs // 4)}
    rows = split(len(table.y))
    runs: list[Run] = []
    for seed in range(options.seeds):
        runs.append(measure(table, rows, parameters, seed=seed, device=options.device))
        print(
            f"seed {seed}: RMSE {runs[-1].rmse:.4f}, epoch {runs[-1].best_epoch} of {runs[-1].n_epochs}, "
            f"table error {runs[-1].table_error:.1e}, {runs[-1].seconds:.0f} s",
            flush=True,
        )
        found = report(runs, parameters, options.device)  # after every seed: a run cut short still says something
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=2) + "\n")
    print(f"RMSE {found['rmse_mean']:.4f} ± {found['rmse_sd']:.4f}; the paper: 0.451 ± 0.002")


def _rmse(predicted: NDArray[np.floating[Any]], target: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean((predicted - target) ** 2)))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_mode", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of housing.parquet or housing.npz")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 0")
    parser.add_argument("--device", default="auto", help="'auto', 'cpu' or 'cuda'")
    parser.add_argument("--max-epochs", type=int, default=None, help="fewer epochs than the paper's, for a trial")
    parser.add_argument("--out", type=Path, default=Path("runs/paper_housing.json"), help="where the JSON goes")
    parser.add_argument("--convert", type=Path, default=None, help="write the table as .npz here and stop")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
