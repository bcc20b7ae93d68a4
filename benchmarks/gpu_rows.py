"""Measure training speed on a million rows of 90 features, the shape of the Year table, with several precisions.

Run as a module, on every device that is to be compared; each run replaces its own device's part of the results::

    python -m benchmarks.gpu_rows --device cuda
    python -m benchmarks.gpu_rows --device cpu --rows 16384 --seeds 1 --epochs 2

A network of 8 experts and 8 members is trained with three precisions on the same rows with several seeds, so that a
difference between precisions can be compared with the noise between seeds. Other sizes, including the defaults for so
many rows, are timed over a few steps. Everything in a step counts: choosing
the rows, forward, backward, optimiser. The rows are generated: one half of the variance is main effects and pairs,
the other noise.
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import ForeignLoad, describe
from nae.encoding import Cells, Columns, build_schema, infer_kinds
from nae.engines.torch import TorchEngine
from nae.engines.torch.rows import TensorRows
from nae.estimators.settings import resolve
from nae.network import draw_network, piecewise_inputs
from nae.parameters import Parameters
from nae.training import Job, TrainingRows, make_loss, train
from nae.training.assemble import padded_slots

__all__ = ["OFFICIAL", "Official", "Run", "main", "measure", "write_page"]

N_FEATURES = 90
N_KNOTS = 91
N_TEST = 50_000
PRECISIONS = {"cuda": ("float32", "tf32", "bfloat16"), "cpu": ("float32",)}
BATCHES = (4_096, 16_384, 65_536)


@dataclass(frozen=True)
class Official:
    """Seconds of a step of the official implementation: a line through two measurements on an H200, batch 512."""

    seconds_32: float = 14.9e-3
    seconds_512: float = 200e-3
    batch_size: int = 512
    gigabytes_512: float = 37.6

    def rows_per_second(self, n_features: int) -> float:
        """Return the seconds of a step for one model, according to that line."""
        slope = (self.seconds_512 - self.seconds_32) / (512 - 32)
        return self.batch_size / (self.seconds_32 + slope * (n_features - 32))

    def kilobytes_per_row(self, n_features: int) -> float:
        """Return the memory of a row in a batch, proportional to the features."""
        return self.gigabytes_512 * 1e6 / self.batch_size * n_features / 512


OFFICIAL = Official()


@dataclass(frozen=True)
class Run:
    """One training and its result."""

    precision: str
    n_experts: int
    n_members: int
    batch_size: int
    seed: int = 0
    hidden_dim: int = 32
    rows_per_second: float | None = None
    rmse: float | None = None
    """RMSE of the members' mean on test rows, in float32."""
    memory_gb: float | None = None
    """Peak memory of the device."""
    reason: str = ""
    """The reason if there is no result."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The rows, and everything that a network for them needs."""

    device: str
    rows: TrainingRows
    test: TrainingRows
    inputs: np.ndarray[Any, Any]
    encode_seconds: float


def make_problem(n_rows: int, device: str) -> Problem:
    """Return generated rows as cells."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows + N_TEST, N_FEATURES), dtype=np.float32)
    main_effects = np.sin(2 * X[:, :10]).sum(axis=1) / np.sqrt(10)
    pairs = (X[:, 10:20] * np.sign(X[:, 20:30])).sum(axis=1) / np.sqrt(10)
    y = main_effects + pairs + random.standard_normal(len(X))
    started = time.perf_counter()
    columns = Columns(tuple(X[:n_rows].T.astype(np.float64)))
    schema = build_schema(columns, infer_kinds(columns), np.ones(n_rows), n_knots=N_KNOTS)
    position = padded_slots(schema)
    parts = []
    for start, end in ((0, n_rows), (n_rows, len(X))):
        cells = schema.locate(Columns(tuple(X[start:end].T.astype(np.float64))), dtype=np.float32)
        target = ((y[start:end, None] - y.mean()) / y.std()).astype(np.float32)
        own = Cells(position[cells.slot], cells.fraction)
        parts.append(TrainingRows(own, target, np.ones(end - start, dtype=np.float32), None))
    return Problem(device, parts[0], parts[1], piecewise_inputs(schema, 48), time.perf_counter() - started)


def measure(run: Run, problem: Problem, *, n_epochs: int, n_rows: int | None = None) -> Run:
    """Train once and return the run with its result. Running out of memory is a result, too."""
    rows = problem.rows
    if n_rows is not None and n_rows < len(rows):
        rows = rows.take(slice(n_rows))
    is_cuda = problem.device.startswith("cuda")
    gc.collect()
    if is_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        with _precision(run.precision):
            rmse, seconds = _train(run, rows, problem, n_epochs)
    except torch.OutOfMemoryError as error:
        return replace(run, reason=str(error).splitlines()[0][:120])
    n_trained = (n_epochs - 1) * run.batch_size * max(1, round(len(rows) / run.batch_size))
    return replace(
        run,
        rows_per_second=n_trained / seconds,
        rmse=rmse,
        memory_gb=torch.cuda.max_memory_allocated() / 1e9 if is_cuda else None,
    )


def _train(run: Run, rows: TrainingRows, problem: Problem, n_epochs: int) -> tuple[float, float]:
    """Return the error on the test rows, and the seconds of all epochs but the first."""
    inputs = problem.inputs
    parameters = Parameters(
        gate="low-rank",
        n_experts=run.n_experts,
        n_members=run.n_members,
        hidden_dim=run.hidden_dim,
        batch_size=run.batch_size,
        max_epochs=n_epochs,
    )
    settings = resolve(parameters, n_rows=len(rows), n_features=inputs.shape[0])
    random = np.random.default_rng(run.seed)
    network = draw_network(settings.network, inputs, 1, random=random)
    training = replace(settings.training, n_folds=None)  # no row is held out
    job = Job(network, rows, None, make_loss("squared"), training, random, n_threads=torch.get_num_threads())
    with closing(TorchEngine(job, device=problem.device)) as engine:
        seconds = train(engine, training).column("seconds")
        # The first epoch is the warm-up and captures the graph.
        return _rmse(engine, problem.test), float(seconds[-1] - seconds[0])


@contextmanager
def _precision(name: str) -> Iterator[None]:
    """Compute products in another precision within a block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    try:
        # Cached casts would keep the weights of the first step for all steps.
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=name == "bfloat16", cache_enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@torch.no_grad()
def _rmse(engine: TorchEngine, test: TrainingRows) -> float:
    network = engine.module.eval()
    evaluation = network.evaluate()
    squares = [
        (evaluation.route(part.cells).score.mean(dim=-1) - part.target).square().sum()
        for part in (
            TensorRows.of(test.take(slice(start, start + 4096)), network.inputs.device)
            for start in range(0, len(test), 4096)
        )
    ]
    return float(torch.stack(squares).sum() / len(test)) ** 0.5


def _runs(device: str, n_seeds: int, *, has_batches: bool) -> Iterator[tuple[Run, bool]]:
    """Yield the runs to measure, and whether the score is wanted, which takes a whole training."""
    yield Run("float32", 4, 1, 512), False  # the size at which the official implementation was measured
    yield Run("float32", 16, 8, 1_024, hidden_dim=64), False  # the defaults for a million rows
    for batch_size in BATCHES if has_batches else ():
        yield Run("float32", 8, 8, batch_size), False
    for seed in range(n_seeds):
        for precision in PRECISIONS[device]:
            yield Run(precision, 8, 8, 1_024, seed), True


def main() -> None:
    """Measure and write numbers and page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=tuple(PRECISIONS), default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=4, help="epochs of the trainings whose score is measured")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="number of torch threads on the CPU")
    parser.add_argument("--budget", type=float, default=200, help="start no further training after this many seconds")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu_rows.json"))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    others, started = ForeignLoad(), time.perf_counter()
    problem = make_problem(given.rows, given.device)
    print(f"encoded {given.rows:,} rows in {problem.encode_seconds:.1f} s", flush=True)
    runs = []
    for run, is_scored in _runs(given.device, given.seeds, has_batches=given.device == "cuda"):
        few = max(4 * run.batch_size, 131_072) if given.device == "cuda" else 16 * run.batch_size
        n_rows, n_epochs = (None, given.epochs) if is_scored else (few, 3)
        if time.perf_counter() - started > given.budget:
            runs.append(replace(run, reason="the time budget was spent"))
        else:
            runs.append(measure(run, problem, n_epochs=n_epochs, n_rows=n_rows))
        print(json.dumps(asdict(runs[-1])), flush=True)
    part = {
        "name": torch.cuda.get_device_name() if given.device == "cuda" else f"{describe()}, {given.threads} threads",
        "torch": torch.__version__,
        "rows": given.rows,
        "epochs": given.epochs,
        "encode_seconds": problem.encode_seconds,
        "foreign_load": others.since(time.perf_counter() - started),
        "runs": [asdict(run) for run in runs],
    }
    found = json.loads(given.out.read_text()) if given.out.exists() else {}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({**found, given.device: part}, indent=1) + "\n")
    write_page(given.out)
    print(f"wrote {given.out} and {given.out.with_suffix('.md')} in {time.perf_counter() - started:.0f} s")


def write_page(path: Path) -> None:
    """Write the page beside the numbers."""
    found = json.loads(path.read_text())
    lines = [
        "# Rows per second",
        "",
        "Training speed, everything in a step included; made by `python -m benchmarks.gpu_rows` from generated rows of",
        f"{N_FEATURES} features, the shape of the Year table. {N_KNOTS} knots, low-rank gate of 64.",
        "A row counts once per pass, however many members see it.",
    ]
    for part in found.values():
        lines += ["", f"## {part['name']}", "", _describe(part), "", *_table(part)]
    lines += ["", "## The official implementation", "", *_official(found)]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")


def _describe(part: dict[str, Any]) -> str:
    text = f"{part['rows']:,} rows, {part['epochs']} epochs where a score is given; torch {part['torch']}; "
    text += f"knots and cells took {part['encode_seconds']:.1f} s on the CPU."
    load = part["foreign_load"]
    return text if load is None or load < 0.1 else f"{text} **Others used {load:.0%} of the processors meanwhile.**"


def _table(part: dict[str, Any]) -> list[str]:
    lines = [
        "| precision | experts | members | width | batch | rows per second | test RMSE (± sd of seeds) | memory, GB |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in part["runs"]:
        is_scored = run["batch_size"] == 1024 and run["n_members"] == run["n_experts"] == 8
        key = (run["precision"], run["n_experts"], run["n_members"], run["hidden_dim"], run["batch_size"])
        groups.setdefault(key, []).append(run if is_scored else {**run, "rmse": None})
    for key, runs in groups.items():
        speeds = [run["rows_per_second"] for run in runs if run["rows_per_second"]]
        scores = [run["rmse"] for run in runs if run["rmse"] is not None]
        memory = [run["memory_gb"] for run in runs if run["memory_gb"]]
        spread = f" ± {statistics.stdev(scores):.4f}" if len(scores) > 1 else ""
        cells = [
            f"{statistics.median(speeds):,.0f}" if speeds else runs[0]["reason"].partition(".")[0],
            f"{statistics.mean(scores):.4f}{spread}" if scores else "–",
            f"{max(memory):.1f}" if memory else "–",
        ]
        lines.append(f"| {' | '.join([key[0], *(f'{one:,}' for one in key[1:]), *cells])} |")
    return lines


def _official(found: dict[str, Any]) -> list[str]:
    speed, size = OFFICIAL.rows_per_second(N_FEATURES), OFFICIAL.kilobytes_per_row(N_FEATURES)
    lines = [
        "Not run here: a line through its two measured steps on an H200 (32 features 14.9 ms, 512 features 200 ms,",
        f"batch 512, one model of 4 experts) gives {speed:,.0f} rows per second at {N_FEATURES} features,",
        f"and {size:,.0f} kB of memory per row of a batch.",
    ]
    for part in found.values():
        alike = [run for run in part["runs"] if (run["n_experts"], run["n_members"]) == (4, 1)]
        if alike and alike[0]["rows_per_second"]:
            ratio = alike[0]["rows_per_second"] / speed
            lines.append(f"Our step of the same size on {part['name']}: {ratio:.3g} times that many rows.")
    return lines


if __name__ == "__main__":
    main()
