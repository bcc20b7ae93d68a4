"""Measure the cost of a fit against rows, features, experts and members, as a table and a picture.

Along features, experts and members, single training steps are timed. Along rows, whole epochs are timed, including
everything around them. Numbers that are computed from these (an epoch, the longest fit) are marked as computed.
"""

import argparse
import json
import math
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.durations import read_duration
from benchmarks.machine import ForeignLoad, describe, peak_memory_mb

__all__ = ["Measured", "Point", "add_command", "measure_rows", "measure_steps", "points", "run_cost"]

AXES = ("rows", "features", "experts", "members")
N_STEPS = 4
"""Steps per epoch when single steps are timed. The first of three epochs is the warm-up."""


@dataclass(frozen=True)
class Point:
    """One place in the space of sizes, on one of the axes."""

    axis: str
    n_rows: int = 100_000
    n_features: int = 16
    n_experts: int = 8
    n_members: int = 8

    @property
    def size(self) -> int:
        """The number that varies along the axis."""
        found: int = getattr(self, f"n_{self.axis}")
        return found


@dataclass(frozen=True)
class Measured:
    """The cost of a point. None means not measured, and ``reason`` says why."""

    point: Point
    device: str = ""
    gate: str = ""
    batch_size: int = 0
    most_steps: int = 0
    """Number of steps of the longest fit that the defaults allow. Most fits stop earlier."""
    step_seconds: float | None = None
    epoch_seconds: float | None = None
    """Measured along rows; computed from the step elsewhere."""
    encode_seconds: float | None = None
    """Time of a fit outside training: encoding before it, tables and statistics after it."""
    predict_seconds: float | None = None
    memory_mb: float | None = None
    foreign_load: float | None = None
    reason: str = ""

    @property
    def most_fit_seconds(self) -> float | None:
        """The longest fit, computed from the step."""
        return None if self.step_seconds is None else self.step_seconds * self.most_steps + (self.encode_seconds or 0)


def points() -> Iterator[Point]:
    """Yield the points to measure. Axes whose last points take longest come last."""
    yield from (Point("experts", n_experts=n) for n in (2, 4, 8, 16, 32))
    yield from (Point("members", n_members=n) for n in (1, 2, 4, 8, 16))
    yield from (Point("features", n_features=n) for n in (8, 32, 128, 512))
    yield from (Point("rows", n_rows=n, n_features=8) for n in (10_000, 100_000, 1_000_000))


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser("cost", help="cost against rows, features, experts, members", description=__doc__)
    parser.add_argument("--device", default="cpu", help="'cpu' or 'cuda'")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads; default: all processors")
    parser.add_argument("--time-budget", default="5m", help="start no further measurement after this time")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cost.json"), help="the measurements")
    parser.add_argument("--draw-only", action="store_true", help="make page and picture from old measurements")
    parser.set_defaults(run=run_cost)


def run_cost(given: argparse.Namespace) -> None:
    """Measure, then write numbers, page and picture side by side."""
    if not given.draw_only:
        found = list(_measure_all(given.device, given.threads, read_duration(given.time_budget)))
        given.out.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "machine": f"{describe()}, {given.threads} threads",
            "points": [asdict(measured) for measured in found],
        }
        given.out.write_text(json.dumps(content, indent=1) + "\n")
    from benchmarks.cost_page import write_page

    write_page(given.out)
    print(f"wrote {given.out}, {given.out.with_suffix('.md')} and {given.out.with_suffix('.png')}")


def measure_steps(point: Point, device: str, threads: int | None = None) -> Measured:
    """Time single steps with the defaults' batches, and compute an epoch from them."""
    from benchmarks.gpu_step import step_seconds

    blank = _settings(point, device)
    seconds = step_seconds(
        point.n_features,
        n_experts=point.n_experts,
        n_members=point.n_members,
        batch_size=blank.batch_size,
        n_rows=N_STEPS * blank.batch_size,
        device=device,
        n_epochs=3,
        n_threads=threads,
    )
    epoch = seconds * round(point.n_rows / blank.batch_size)
    return replace(blank, step_seconds=seconds, epoch_seconds=epoch)


def measure_rows(point: Point, device: str, threads: int | None = None) -> Measured:
    """Time a fit of one epoch on generated rows, and predicting them."""
    import numpy as np

    from nae import NAERegressor

    random = np.random.default_rng(0)
    X = random.standard_normal((point.n_rows, point.n_features))
    y = X[:, 0] * np.sign(X[:, 1]) + random.standard_normal(point.n_rows)
    blank = _settings(point, device)
    own = {"n_experts": point.n_experts, "n_members": point.n_members}
    model = NAERegressor(**own, max_epochs=1, random_state=0, n_jobs=threads, device=device)
    started = time.perf_counter()
    model.fit(X, y)
    fit = time.perf_counter() - started
    started = time.perf_counter()
    model.predict(X)
    predict = time.perf_counter() - started
    epoch = float(model.history_.epochs[-1].seconds)
    step = epoch / max(1, round(point.n_rows / blank.batch_size))
    return replace(blank, step_seconds=step, epoch_seconds=epoch, encode_seconds=fit - epoch, predict_seconds=predict)


def _settings(point: Point, device: str) -> Measured:
    """Return the settings that the defaults choose for these sizes."""
    from nae import NAERegressor
    from nae.estimators.settings import resolve
    from nae.parameters import Parameters

    parameters = NAERegressor(n_experts=point.n_experts, n_members=point.n_members).get_params()
    found = resolve(Parameters.read(parameters), n_rows=point.n_rows, n_features=point.n_features)
    batch_size = found.training.batch_size
    return Measured(
        point,
        device=device,
        gate=found.network.gate,
        batch_size=batch_size,
        most_steps=found.training.max_epochs * round(point.n_rows / batch_size),
    )


def _measure(point: Point, device: str, threads: int) -> Measured:
    """Measure one point in a process of its own."""
    others, started = ForeignLoad(), time.perf_counter()
    found = (measure_rows if point.axis == "rows" else measure_steps)(point, device, threads)
    load = others.since(time.perf_counter() - started)
    memory = peak_memory_mb()
    if device.startswith("cuda"):
        import torch

        memory = torch.cuda.max_memory_reserved() / 1e6
        found = replace(found, device=torch.cuda.get_device_name())
    return replace(found, memory_mb=memory, foreign_load=load)


def _measure_all(device: str, threads: int, budget_seconds: float) -> Iterator[Measured]:
    end = time.monotonic() + budget_seconds
    context = multiprocessing.get_context("spawn")
    for point in points():
        if time.monotonic() > end:
            found = Measured(point, reason="the time budget was spent")
        else:
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                try:
                    found = pool.submit(_measure, point, device, threads).result()
                except (BrokenProcessPool, RuntimeError) as error:  # killed, or out of memory
                    found = Measured(point, reason=str(error).splitlines()[0][:200])
        step = math.nan if found.step_seconds is None else 1e3 * found.step_seconds
        print(f"{point.axis:>9} {point.size:>9,}  {step:9.2f} ms a step  {found.reason}", flush=True)
        yield found
