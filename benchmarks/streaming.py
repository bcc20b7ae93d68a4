"""Compare fits from files with fits in memory: memory, speed and accuracy.

    NAE_DATA=folder python -m benchmarks.streaming --rows 20000000

For memory, a table is generated in Parquet files (under ``runs/streaming``, not part of the repository), and a scan of
it is fitted with few steps while the anonymous memory of the process is sampled. For speed, the first rows of the same
files are fitted in both ways with the same settings. For accuracy, Beijing air is fitted in both ways. Each fit runs in
its own process with one thread. Speed is rows per second of processor time, which hardly depends on other processes.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.machine import describe

__all__ = ["AnonymousMemory", "generate", "main"]

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "runs" / "streaming"
RESULT = ROOT / "benchmarks" / "results" / "streaming.json"
FILE_ROWS = 1_000_000
PARTS = ("memory", "speed", "accuracy")
N_TEXT = 3  # number of text columns among the features
STEPS = 300  # number of steps of the fit whose memory is measured
SHARED: dict[str, Any] = {"n_members": 2, "batch_size": 8192, "random_state": 0, "n_jobs": 1, "device": "cpu"}
# A small network, because only the memory of many rows is measured.
MEMORY: dict[str, Any] = SHARED | {"max_epochs": 1, "n_experts": 1, "hidden_dim": 8, "n_ramps": 8}
SPEED: dict[str, Any] = SHARED | {"max_epochs": 2, "n_experts": 4, "hidden_dim": 16, "gate_rank": 16}
AIR: dict[str, Any] = {"n_members": 2, "max_epochs": 2, "n_jobs": 1, "device": "cpu"}
AIR_SEEDS = (0, 1, 2)


class AnonymousMemory:
    """Samples the peak anonymous memory of this process, which is memory that is not backed by a file."""

    def __init__(self, every: float = 0.02) -> None:
        self.peak = 0
        self._every, self._is_over = every, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(self._every):
            self.peak = max(self.peak, anonymous_bytes())


def anonymous_bytes() -> int:
    """Return the anonymous memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not say how much memory is anonymous")


def generate(folder: Path, n_rows: int, n_features: int) -> Path:
    """Write a table in files of a million rows, unless it exists. Return its folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = folder / f"{n_rows}x{n_features}"
    for number in range(-(-n_rows // FILE_ROWS)):
        path = place / f"part-{number:04d}.parquet"
        if path.exists():
            continue
        place.mkdir(parents=True, exist_ok=True)
        n_here = min(FILE_ROWS, n_rows - number * FILE_ROWS)
        random = np.random.default_rng([7, number])
        X = random.standard_normal((n_here, n_features - N_TEXT), dtype=np.float32)
        X[:, 0] = np.where(random.random(n_here) < 0.7, 0.0, np.exp(X[:, 0]))  # mostly zeros, such as an amount
        X[:, 1] = np.rint(10 * X[:, 1])
        X[random.random(n_here) < 0.05, 2] = np.nan
        codes = random.integers(0, 40, (n_here, N_TEXT)) * random.integers(0, 2, (n_here, N_TEXT))
        y = np.sin(X[:, 3]) + X[:, 4] * X[:, 5] + 0.1 * X[:, 0] + 0.05 * codes[:, 0] + random.standard_normal(n_here)
        names = np.array([f"level {i}" for i in range(40)])
        columns = {f"x{i}": X[:, i] for i in range(X.shape[1])} | {f"c{i}": names[codes[:, i]] for i in range(N_TEXT)}
        partial = path.with_suffix(".partial")
        pq.write_table(pa.table(columns | {"y": y}), partial)
        partial.replace(path)
    return place


class Epochs:
    """A callback that notes the processor time at the end of every epoch."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def __call__(self, **_: object) -> None:
        self.ends.append(time.process_time())

    def rows_per_second(self, n_rows: int) -> float:
        """Return the speed of the epochs after the first, validation included."""
        return n_rows * (len(self.ends) - 1) / (self.ends[-1] - self.ends[0])


def few_batches(batches: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Return a source's first batches. An epoch of many rows is long, and memory soon reaches its final size."""

    def first(*arguments: Any) -> Iterator[Any]:
        return islice(batches(*arguments), STEPS)

    return first


def fit_many(folder: str) -> dict[str, Any]:
    """Fit a scan of all files, and return time and memory."""
    import nae
    from nae.training.cached import CachedRows

    marks: dict[str, float] = {}

    def note(what: str, done: int, total: int | None) -> None:
        marks[what.split(maxsplit=1)[0]] = time.process_time()

    model = nae.NAERegressor(**MEMORY)
    CachedRows.batches = few_batches(CachedRows.batches)  # type: ignore[method-assign]
    before, start, clock = anonymous_bytes(), time.process_time(), time.perf_counter()
    with AnonymousMemory() as memory:
        model.fit(nae.scan(folder).with_progress(note), y="y")
    return {
        "rows": model.model_.training.n_rows,
        "survey": marks["surveying"] - start,
        "encode": marks["writing"] - marks["surveying"],
        "processor": time.process_time() - start,
        "seconds": time.perf_counter() - clock,
        "before": before,
        "peak": memory.peak,
    }


def fit_few(folder: str, n_rows: int, *, is_streamed: bool) -> dict[str, Any]:
    """Fit the first rows, from files or in memory, and return the speed."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    import nae

    paths = sorted(str(path) for path in Path(folder).glob("*.parquet"))[: -(-n_rows // FILE_ROWS)]
    table = pa.concat_tables([pq.read_table(path) for path in paths]).slice(0, n_rows)
    epochs = Epochs()
    model = nae.NAERegressor(**SPEED, callbacks=[epochs])
    with AnonymousMemory() as memory:
        if is_streamed:
            model.fit(nae.scan(ds.dataset(table)), y="y")
        else:
            model.fit(table.drop_columns(["y"]), table.column("y").to_numpy())
    return {"rows": n_rows, "rows_per_second": epochs.rows_per_second(n_rows), "peak": memory.peak}


def fit_air(data: str, settings: dict[str, Any], *, is_streamed: bool) -> dict[str, Any]:
    """Fit seven eighths of Beijing air and return the error on the rest."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    import nae

    table = pq.read_table(Path(data) / "beijing_air.parquet")
    target = "target" if "target" in table.column_names else table.column_names[-1]
    table = table.filter(pc.invert(table.column(target).is_null(nan_is_null=True)))
    is_test = np.random.default_rng(0).random(table.num_rows) < 1 / 8
    training, test = table.filter(pa.array(~is_test)), table.filter(pa.array(is_test))
    model = nae.NAERegressor(**settings)
    start = time.perf_counter()
    if is_streamed:
        model.fit(nae.scan(ds.dataset(training), block_rows=1 << 15), y=target)
    else:
        model.fit(training.drop_columns([target]), training.column(target).to_numpy())
    error = model.predict(test.drop_columns([target])) - test.column(target).to_numpy()
    return {"rmse": float(np.sqrt(np.mean(error**2))), "seconds": time.perf_counter() - start}


def child(task: str, *arguments: Any) -> dict[str, Any]:
    """Run one fit in a process of its own and return its figures."""
    command = [sys.executable, "-m", "benchmarks.streaming", "--task", task, *map(json.dumps, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(task, arguments[-1] if arguments else "", found, flush=True)
    return found


def perform(task: str, arguments: list[str]) -> dict[str, Any]:
    """Carry out the request in a child process."""
    given = [json.loads(one) for one in arguments]
    if task == "many":
        return fit_many(given[0])
    if task in ("few-streamed", "few-resident"):
        return fit_few(given[0], given[1], is_streamed=task == "few-streamed")
    return fit_air(given[0], AIR | {"random_state": given[1]}, is_streamed=task == "air-streamed")


@contextmanager
def measured_table(n_rows: int, n_features: int, *, is_kept: bool) -> Iterator[Path]:
    """Yield the folder of a generated table, and remove it afterwards unless it is to be kept."""
    place = generate(FOLDER, n_rows, n_features)
    try:
        yield place
    finally:
        if not is_kept:
            for path in place.iterdir():
                path.unlink()
            place.rmdir()


def page(figures: dict[str, Any]) -> str:
    """Return the available results as a page."""
    sections = [f"# Fitting from files\n\n`python -m benchmarks.streaming` on {describe()}; one thread for each fit.\n"]
    parts = {"memory": _memory, "speed": _speed, "accuracy": _accuracy}
    sections += [write(figures[name]) for name, write in parts.items() if name in figures]
    return "\n".join(sections)


def _memory(many: dict[str, Any]) -> str:
    peak, before = many["peak"] / 1e9, many["before"] / 1e9
    return (
        f"**Memory.** {many['rows']:,} generated rows of {many['features']} features, {N_TEXT} of them text; {STEPS}\n"
        f"steps of a small network. Peak of anonymous memory: **{peak:.2f} GB**, of which {before:.2f} GB were held\n"
        f"before the fit by the interpreter and its libraries. Processor time: {many['survey']:.0f} s for the first\n"
        f"pass (sketches), {many['encode']:.0f} s for the second (cells to the cache), {many['processor']:.0f} s in\n"
        f"all; {many['seconds']:.0f} s on the clock of a shared machine.\n"
    )


def _speed(few: dict[str, dict[str, Any]]) -> str:
    speeds = {name: one["rows_per_second"] for name, one in few.items()}
    rows = "".join(f"| {name} | {speed:,.0f} |\n" for name, speed in speeds.items())
    return (
        f"**Speed.** The first {few['in memory']['rows']:,} rows, {SPEED['n_members']} members, "
        f"{SPEED['n_experts']} experts, batches of {SPEED['batch_size']:,} rows:\n\n"
        f"| | rows per second of processor time, in an epoch |\n|---|---|\n{rows}\n"
        f"From files, an epoch runs at {speeds['from files'] / speeds['in memory']:.2f} of the speed in memory.\n"
    )


def _accuracy(air: dict[str, list[float]]) -> str:
    rows = "".join(
        f"| {name} | {np.mean(found):.3f} ± {np.std(found):.3f} | {', '.join(f'{one:.3f}' for one in found)} |\n"
        for name, found in air.items()
    )
    return (
        f"**Accuracy.** Beijing air, RMSE on a held-out eighth, {AIR['n_members']} members, {AIR['max_epochs']} "
        "epochs;\nfrom files in blocks of 32,768 rows:\n\n"
        f"| | RMSE, mean ± standard deviation over seeds | each seed |\n|---|---|---|\n{rows}"
    )


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--few-rows", type=int, default=200_000, help="rows to compare the speed on")
    parser.add_argument("--data", default=os.environ.get("NAE_DATA"), help="folder of beijing_air.parquet")
    parser.add_argument(
        "--parts", nargs="+", default=PARTS, choices=PARTS, help="parts to measure; other parts of the page are kept"
    )
    parser.add_argument("--keep", action="store_true", help="keep the generated files")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--task", default=None, help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        print(json.dumps(perform(given.task, given.arguments)))
        return
    figures: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name, found in measure(given):
        figures[name] = found
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(figures, indent=1) + "\n")
        given.out.with_suffix(".md").write_text(page(figures))


def measure(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the requested parts, each as soon as it is measured."""
    if {"memory", "speed"} & set(given.parts):
        with measured_table(given.rows, given.features, is_kept=given.keep) as place:
            if "memory" in given.parts:
                yield "memory", child("many", str(place)) | {"features": given.features}
            if "speed" in given.parts:
                n_few = min(given.rows, given.few_rows)
                tasks = {"in memory": "few-resident", "from files": "few-streamed"}
                yield "speed", {name: child(task, str(place), n_few) for name, task in tasks.items()}
    if "accuracy" in given.parts:
        air: dict[str, list[float]] = {"in memory": [], "from files": []}
        for seed in AIR_SEEDS:
            air["in memory"].append(child("air-resident", given.data, seed)["rmse"])
            air["from files"].append(child("air-streamed", given.data, seed)["rmse"])
            yield "accuracy", air


if __name__ == "__main__":
    main()
