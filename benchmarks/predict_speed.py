"""Prediction speed against LightGBM and EBM: one process, the same rows and cores, reported as ratios.

    NAE_DATA=folder python -m benchmarks.predict_speed

Models are fitted once and kept under ``runs/predict_speed`` (not part of the repository). EBM is fitted with
few rounds, rows and bags: the speed of its predictions depends on its terms, not on how long it was fitted.
Rounds take turns, so that whatever else the machine does falls on all; the figure is the median of the rounds.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import nae

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "runs" / "predict_speed"
RESULT = ROOT / "benchmarks" / "results" / "predict_speed.md"
ROUNDS = 9
BATCH = 10_000


def housing() -> tuple[Any, Any]:
    """Return the California housing table."""
    import pandas as pd

    table = pd.read_parquet(Path(os.environ["NAE_DATA"]) / "housing.parquet")
    return table.drop(columns="target").astype("float64"), table["target"].to_numpy()


def wide() -> tuple[Any, Any]:
    """Return 20,000 rows of 90 features, of which ten matter, some in pairs."""
    import pandas as pd

    random = np.random.default_rng(0)
    X = random.standard_normal((20_000, 90))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3:10].sum(axis=1) + 0.3 * random.standard_normal(len(X))
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(90)]), y


def fitted(name: str, X: Any, y: Any, **params: Any) -> nae.TableModel:
    """Return our model, fitted once."""
    path = CACHE / f"{name}.nae"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        nae.NAERegressor(random_state=0, **params).fit(X, y).save(path)
        print(f"{name}: fitted in {time.perf_counter() - start:.0f} s")
    return nae.load(path)


def peers(X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return LightGBM as in the benchmark suite, EBM of main effects, and EBM with its default pairs."""
    import lightgbm as lgb
    from interpret.glassbox import ExplainableBoostingRegressor

    cut = len(X) * 7 // 8
    forest = lgb.LGBMRegressor(n_estimators=3000, learning_rate=0.03, verbose=-1)
    stop = lgb.early_stopping(100, verbose=False)
    forest.fit(X[:cut], y[:cut], eval_X=X[cut:], eval_y=y[cut:], callbacks=[stop])
    shared = {"outer_bags": 2, "random_state": 0, "n_jobs": 1, "max_rounds": 200}
    few = slice(0, 4000)
    mains = ExplainableBoostingRegressor(interactions=0, **shared).fit(X[few], y[few])
    return forest, mains, ExplainableBoostingRegressor(**shared).fit(X[few], y[few])


def rounds(tasks: dict[str, Callable[[], Any]], n: int = ROUNDS) -> dict[str, float]:
    """Return the median seconds of every task, all tasks taking turns."""
    for task in tasks.values():
        task()
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(n):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(times) for name, times in seconds.items()}


def measure(name: str, X: Any, y: Any, **params: Any) -> list[str]:
    """Return the lines of the table for one data set."""
    order = np.random.default_rng(0).permutation(len(X))  # tables come sorted; early stopping needs a fair sample
    X, y = X.iloc[order].reset_index(drop=True), y[order]
    model = fitted(name, X, y, **params)
    fast = model.compile()
    forest, mains, pairs = peers(X, y)
    batch = X.iloc[np.arange(BATCH) % len(X)].reset_index(drop=True)
    found = rounds(
        {
            "LightGBM predict": lambda: forest.predict(batch),
            "EBM-mains predict": lambda: mains.predict(batch),
            "EBM predict": lambda: pairs.predict(batch),
            "numpy predict": lambda: model.predict(batch),
            "numpy contributions": lambda: model.contributions(batch),
            "kernel predict": lambda: fast.predict(batch),
            "kernel contributions": lambda: fast.contributions(batch),
        }
    )
    lines = []
    for task, seconds in found.items():
        own = found[f"{task.split()[0]} predict"]
        lines.append(
            f"| {name} | {task} | {1e6 * seconds / BATCH:.2f} | {seconds / found['LightGBM predict']:.2f} "
            f"| {seconds / found['EBM predict']:.1f} | {seconds / own:.2f} |"
        )
    print(*lines, sep="\n")
    trees = f"{name}: LightGBM stopped at {forest.best_iteration_} trees; {model}"
    return [*lines, f"<!-- {trees} -->"]


def one_row(model: nae.TableModel, record: dict[str, Any]) -> tuple[float, float]:
    """Return the median microseconds of predicting one row from a dict, with numpy and with the kernel."""
    fast = model.compile()
    found = rounds({"numpy": lambda: model.predict(record), "kernel": lambda: fast.predict(record)}, n=500)
    return 1e6 * found["numpy"], 1e6 * found["kernel"]


def first_call(path: Path, record: dict[str, Any]) -> float:
    """Return the median seconds from starting Python's first import to a prediction, in fresh processes."""
    code = f"import time; s = time.perf_counter(); import nae; nae.load({str(path)!r}).predict({record!r})"
    code += "; print(time.perf_counter() - s)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(7)]
    return median(float(run.stdout) for run in runs)


def memory(model: nae.TableModel, X: Any) -> tuple[float, float]:
    """Return the peak memory in MB after a million rows and after ten, predicted in batches."""
    batch = X.to_numpy()[np.arange(100_000) % len(X)]
    fast = model.compile()
    peaks = []
    for n_batches in (10, 90):
        for _ in range(n_batches):
            fast.predict(batch)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return peaks[0], peaks[1]


def main() -> None:
    """Measure everything and write the page."""
    X, y = housing()
    lines = measure("Housing", X, y)
    model = nae.load(CACHE / "Housing.nae")
    record = {name: float(value) for name, value in X.iloc[0].items()}
    numpy_one, kernel_one = one_row(model, record)
    first = first_call(CACHE / "Housing.nae", record)
    before, after = memory(model, X)
    wide_X, wide_y = wide()
    lines += measure("90 features", wide_X, wide_y, max_epochs=8)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    table = [line for line in lines if line.startswith("|")]
    notes = [line for line in lines if not line.startswith("|")]
    RESULT.write_text(
        "# Speed of predicting\n\n"
        f"Batches of {BATCH:,} rows from a pandas frame, {os.cpu_count()} cores, median of {ROUNDS} rounds that take "
        "turns.\nLower is better; ratios below 1 are faster than the peer. LightGBM: up to 3,000 trees, learning rate "
        "0.03, early stopping.\nEBM: its default number of pairs; EBM-mains: `interactions=0`. Fitted briefly, which "
        "does not change the number of terms.\n"
        "Made by `python -m benchmarks.predict_speed`.\n\n"
        "| table | task | µs a row | / LightGBM | / EBM | / own predict |\n|---|---|---|---|---|---|\n"
        + "\n".join(table)
        + f"\n\nOne row from a dict (Housing): numpy {numpy_one:.0f} µs, kernel {kernel_one:.0f} µs, median of 500."
        + f"\nFirst prediction in a fresh process, import included: {first:.2f} s."
        + f"\nPeak memory after 1 million rows {before:.0f} MB, after 10 million {after:.0f} MB."
        + f"\nLoad of the machine over the last 15 minutes: {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores.\n\n"
        + "\n".join(notes)
        + "\n"
    )


if __name__ == "__main__":
    main()
