"""Compare the speed of predictions with LightGBM and EBM: in one process, on the same rows and cores, as ratios.

    NAE_DATA=folder python -m benchmarks.predict_speed

Models are fitted once and kept under ``runs/predict_speed`` (not part of the repository). EBM is fitted with few
rounds, rows and bags, because the speed of its predictions depends only on its terms. Tasks take turns and the fastest
round of each counts, which reduces the influence of other processes. First, all tasks are bound to one core and
measured by processor time, which hardly depends on the load. Then they use all cores and are measured by the clock. The
page is ``benchmarks/results/predict_speed.md``; the README's table is a part of it.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import nae
from benchmarks.machine import ForeignLoad, describe
from benchmarks.readme import put

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "runs" / "predict_speed"
RESULT = ROOT / "benchmarks" / "results" / "predict_speed.md"
ROUNDS = range(5, 26)  # as many rounds as fit into BUDGET seconds
BUDGET = 30
BATCH = 10_000
PEERS = ("LightGBM", "EBM")


@dataclass(frozen=True)
class Timing:
    """The fastest round of a task, in microseconds per row: processor time on one core, clock time on all cores."""

    one_core: float
    all_cores: float


@dataclass(frozen=True)
class Found:
    """The measurements on one table."""

    table: str
    n_trees: int
    model: str
    times: dict[str, Timing]
    difference: float  # largest difference of kernel and numpy, as a share of the largest score


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


def peers(name: str, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return LightGBM as in the benchmark suite, EBM of main effects, and EBM with its default pairs."""
    from interpret.glassbox import ExplainableBoostingRegressor

    shared = {"outer_bags": 2, "random_state": 0, "n_jobs": 1, "max_rounds": 20}
    few = slice(0, 4000)
    mains = ExplainableBoostingRegressor(interactions=0, **shared).fit(X[few], y[few])
    return forest(name, X, y), mains, ExplainableBoostingRegressor(**shared).fit(X[few], y[few])


def forest(name: str, X: Any, y: Any) -> Any:
    """Return LightGBM's forest, early-stopped, fitted once."""
    import lightgbm as lgb

    path = CACHE / f"{name}.lightgbm.txt"
    if not path.exists():
        cut = len(X) * 7 // 8
        model = lgb.LGBMRegressor(n_estimators=3000, learning_rate=0.03, n_jobs=1, verbose=-1)
        stop = lgb.early_stopping(100, verbose=False)
        model.fit(X[:cut], y[:cut], eval_X=X[cut:], eval_y=y[cut:], callbacks=[stop])
        model.booster_.save_model(path, num_iteration=model.best_iteration_)
    return lgb.Booster(model_file=path)


def rounds(tasks: dict[str, Callable[[], Any]], clock: Callable[[], float]) -> dict[str, float]:
    """Return the fastest round of every task in microseconds per row. Tasks take turns."""
    for task in tasks.values():
        task()
    best = dict.fromkeys(tasks, np.inf)
    end = time.monotonic() + BUDGET
    for done in range(ROUNDS[-1]):
        if done >= ROUNDS[0] and time.monotonic() > end:
            break
        for name, task in tasks.items():
            start = clock()
            task()
            best[name] = min(best[name], 1e6 * (clock() - start) / BATCH)
    return best


@contextmanager
def one_core() -> Iterator[None]:
    """Bind this thread, and threads that it starts, to one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def measure(name: str, X: Any, y: Any, **params: Any) -> Found:
    """Measure all models on one table."""
    order = np.random.default_rng(0).permutation(
        len(X)
    )  # the table is sorted, but early stopping needs a random sample
    X, y = X.iloc[order].reset_index(drop=True), y[order]
    model = fitted(name, X, y, **params)
    fast = model.compile()
    trees, mains, pairs = peers(name, X, y)
    batch = X.iloc[np.arange(BATCH) % len(X)].reset_index(drop=True)
    tasks: dict[str, Callable[[], Any]] = {
        "LightGBM predict": lambda: trees.predict(batch, num_threads=len(os.sched_getaffinity(0))),
        "EBM predict": lambda: pairs.predict(batch),
        "EBM predict, no pairs": lambda: mains.predict(batch),
        "numpy predict": lambda: model.predict(batch),
        "numpy contributions": lambda: model.contributions(batch),
        "kernel predict": lambda: fast.predict(batch),
        "kernel contributions": lambda: fast.contributions(batch),
    }
    with one_core():
        alone = rounds(tasks, time.process_time)
    together = rounds(tasks, time.perf_counter)
    expected = model.decision_function(batch)
    difference = float(np.abs(fast.decision_function(batch) - expected).max() / np.abs(expected).max())
    times = {task: Timing(alone[task], together[task]) for task in tasks}
    return Found(name, trees.num_trees(), str(model), times, difference)


def one_row(model: nae.TableModel, record: dict[str, Any]) -> tuple[float, float]:
    """Return the median microseconds of predicting one row from a dict, with numpy and with the kernel."""
    taken: tuple[list[float], list[float]] = ([], [])
    both = (model, model.compile())
    for _ in range(1000):
        for times, one in zip(taken, both, strict=True):
            start = time.perf_counter()
            one.predict(record)
            times.append(1e6 * (time.perf_counter() - start))
    return median(taken[0]), median(taken[1])


def first_call(path: Path, record: dict[str, Any]) -> tuple[float, float]:
    """Return clock and processor seconds from the first import to a prediction, the minimum of some processes."""
    code = "import time; start = time.perf_counter(), time.process_time(); import nae; "
    code += f"nae.load({str(path)!r}).predict({record!r}); "
    code += "print(time.perf_counter() - start[0], time.process_time() - start[1])"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(9)]
    return min(float(wall) for wall, _ in runs), min(float(work) for _, work in runs)


def memory(model: nae.TableModel, X: Any) -> tuple[float, float]:
    """Return the peak memory in MB after predicting one million rows and ten million rows, in batches."""
    batch = X.to_numpy()[np.arange(100_000) % len(X)]
    fast = model.compile()
    peaks = []
    for n_batches in (10, 90):
        for _ in range(n_batches):
            fast.predict(batch)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return peaks[0], peaks[1]


def ratios(found: list[Found]) -> list[str]:
    """Return the table of ratios, the part that the README shows."""
    head = (f"batches of {BATCH:,} rows", "µs a row, one core", "/ LightGBM", "/ EBM", "with contributions and bounds")
    lines = [f"| {' | '.join(head)} | all cores: / LightGBM | / EBM |", "|---|--:|--:|--:|--:|--:|--:|"]
    for one in found:
        for way in ("kernel", "numpy"):
            own, full = one.times[f"{way} predict"], one.times[f"{way} contributions"]
            others = [one.times[f"{peer} predict"] for peer in PEERS]
            alone = " | ".join(f"{own.one_core / other.one_core:.2f}" for other in others)
            together = " | ".join(f"{own.all_cores / other.all_cores:.2f}" for other in others)
            more = f"× {full.one_core / own.one_core:.2f}"
            lines.append(f"| {one.table}, {way} | {own.one_core:.2f} | {alone} | {more} | {together} |")
    return lines


def details(found: list[Found]) -> list[str]:
    """Return the table of all times."""
    lines = ["| table | task | one core, µs a row | all cores, µs a row |", "|---|---|--:|--:|"]
    for one in found:
        lines += [f"| {one.table} | {task} | {t.one_core:.2f} | {t.all_cores:.2f} |" for task, t in one.times.items()]
    return lines


def page(found: list[Found], notes: list[str], busy: float | None) -> str:
    """Return the page."""
    others = "unknown" if busy is None else f"{100 * busy:.0f} %"
    sizes = [
        f"{one.table}: {one.model}. LightGBM stopped at {one.n_trees} trees. "
        f"Kernel and numpy differ by {one.difference:.0e} of the largest score."
        for one in found
    ]
    return f"""# Speed of predicting

Batches of {BATCH:,} rows from a pandas frame; {ROUNDS[0]} to {ROUNDS[-1]} rounds in which all take turns, the fastest
counts. Lower is better; ratios below 1 are faster than the peer. *One core*: everything bound to the same core, by
processor time, so that other work on the machine hardly matters. *All cores*: by the clock, with as many threads as
each likes; busy cores blur it. LightGBM: up to 3,000 trees, learning rate 0.03, early stopping. EBM: its default number
of pairs, fitted briefly, which does not change the number of terms. The kernel is `model.compile()` (extra `fast`);
numpy is the reference.

{describe()}. Other processes took {others} of the processors meanwhile.

{chr(10).join(ratios(found))}

{chr(10).join(f"* {note}" for note in [*notes, *sizes])}

## All times

{chr(10).join(details(found))}

Made by `python -m benchmarks.predict_speed`.
"""


def main() -> None:
    """Measure everything and write the page and the README's table."""
    load, started = ForeignLoad(), time.monotonic()
    found, notes = [], []
    for name, (X, y), params in (("Housing", housing(), {}), ("90 features", wide(), {"max_epochs": 8})):
        found.append(measure(name, X, y, **params))
        record = {column: float(value) for column, value in X.iloc[0].items()}
        plain, compiled = one_row(nae.load(CACHE / f"{name}.nae"), record)
        notes.append(f"{name}, one row from a dict: numpy {plain:.0f} µs, kernel {compiled:.0f} µs, median of 1,000.")
        seconds, work = first_call(CACHE / f"{name}.nae", record)
        notes.append(
            f"{name}, first prediction in a fresh process, import included: {seconds:.2f} s, "
            f"of which {work:.2f} s on a processor; the least of 9."
        )
        if name == "Housing":
            before, after = memory(nae.load(CACHE / f"{name}.nae"), X)
            notes.append(f"Peak memory after 1 million rows {before:.0f} MB, after 10 million {after:.0f} MB.")
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(page(found, notes, load.since(time.monotonic() - started)))
    put("predict_speed", "\n".join(ratios(found)))
    print(RESULT.read_text())


if __name__ == "__main__":
    main()
