"""Measure training like the paper: the time of 100 epochs over 5,000 rows, and the size of the network.

``python -m benchmarks.paper.timing FOLDER --device cuda`` times the runs that are neither in the folder nor among the
kept reports, one after another. It needs only torch and NumPy. The folder is a store of runs like any other.
"""

import argparse
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.paper.runs import PAPER, Run, is_ours
from benchmarks.paper.store import KEPT, Archive, Report, RunStore
from benchmarks.paper.tables import COST_ROWS, SMOKE_FEATURES, SMOKE_ROWS
from nae.recipes import PAPER as PAPER_RECIPE

if TYPE_CHECKING:
    from nae.network import Network, NetworkConfig
    from nae.training import TrainingRows

__all__ = ["NETWORKS", "N_EPOCHS", "Clock", "count_parameters", "time_training"]

NETWORKS = ("nam", "na2m")
"""Peers that are timed like our models: for a fixed number of epochs, without early stopping."""
N_EPOCHS = 100
LIMIT = 60.0
"""Number of seconds after which no further epoch is run."""
BATCH = 2048
HIDDEN = 128
N_BLOCKS = 4


@dataclass
class Clock:
    """The time at the end of every epoch. The last epochs may be left out, because all take equally long."""

    n_epochs: int
    limit: float = LIMIT
    least: int = 6
    warm: int = 3
    """Number of first epochs that are not representative, because memory is allocated and steps are captured."""

    def __post_init__(self) -> None:
        self.marks: list[float] = []

    def __call__(self, *, seconds: float, **_: object) -> bool:
        """Record the end of an epoch. Return whether enough epochs have been timed."""
        self.marks.append(seconds)
        return len(self.marks) >= self.n_epochs or (seconds >= self.limit and len(self.marks) >= self.least)

    @property
    def seconds(self) -> float:
        """The time of all epochs. Epochs that were not run are extrapolated from those after the first few."""
        n_run = len(self.marks)
        if n_run == self.n_epochs:
            return self.marks[-1]
        rate = (self.marks[-1] - self.marks[self.warm - 1]) / (n_run - self.warm)
        return self.marks[-1] + (self.n_epochs - n_run) * rate


def count_parameters(n_features: int, *, n_experts: int, hidden_dim: int = HIDDEN, variant: str = "nae") -> int:
    """Return the number of parameters of the paper's network.

    They are counted without allocating them: the largest network has a thousand million. It is that of a few features,
    continued: experts and blocks grow with the features, and gates at most with their square.
    """
    config = _config(n_experts, hidden_dim, variant)
    few = [sum(array.size for array in _network(n, config).arrays.values()) for n in (1, 2, 3)]
    square = (few[0] - 2 * few[1] + few[2]) // 2
    linear = few[1] - few[0] - 3 * square
    return square * n_features**2 + linear * n_features + few[0] - square - linear


def time_training(run: Run, *, device: str, limit: float = LIMIT) -> Report:
    """Train the network of a run on random numbers and time its epochs. No tables or predictions are made."""
    import torch

    n_rows, n_epochs, hidden = (SMOKE_ROWS, 2, 8) if run.is_smoke else (COST_ROWS, N_EPOCHS, HIDDEN)
    n_features = int(dict(run.options)["n_features"] or 1)
    if run.is_smoke:
        n_features = min(n_features, SMOKE_FEATURES)
    is_cuda = device.startswith("cuda")
    if is_cuda:
        torch.cuda.reset_peak_memory_stats()
    clock = Clock(n_epochs, limit)
    if is_ours(run):
        n_parameters = _time_ours(run, n_features, n_rows, hidden, clock, device=device)
    else:
        n_parameters = _time_peer(run, n_features, n_rows, clock, device=device)
    return Report(
        run,
        fit_seconds=clock.seconds,
        n_parameters=n_parameters,
        parameters_mb=4 * n_parameters / 2**20,
        device_memory_mb=torch.cuda.max_memory_allocated() / 1e6 if is_cuda else None,
        n_train=n_rows,
        n_features=n_features,
        n_epochs=len(clock.marks),
        device=torch.cuda.get_device_name() if is_cuda else f"CPU, {torch.get_num_threads()} thread(s)",
        versions={"torch": torch.__version__},
    )


def _time_ours(run: Run, n_features: int, n_rows: int, hidden: int, clock: Clock, *, device: str) -> int:
    """Time our network. Return its number of parameters."""
    from nae.engines import choose_place, make_engine
    from nae.estimators.settings import resolve
    from nae.parameters import Parameters
    from nae.training import Job, make_loss, train

    is_paper = run.model == PAPER
    n_experts = int(dict(run.settings)["n_experts"] or 1)
    network, rows = _made(n_features, n_experts, n_rows, hidden, is_paper=is_paper)
    parameters = Parameters(
        encoder="mlp" if is_paper else "piecewise",
        batch_size=BATCH if is_paper else 256,
        max_epochs=clock.n_epochs,
        context_penalty=0.0,
    )
    settings = resolve(parameters, n_rows=n_rows, n_features=n_features)
    training = replace(settings.training, n_folds=None)  # no row is held out
    loss, random = make_loss("squared"), np.random.default_rng(run.seed)
    place = choose_place("auto", device, network=network.config, loss=loss)
    with closing(make_engine(place, Job(network, rows, None, loss, training, random))) as engine:
        train(engine, training, callbacks=[clock])
    return sum(array.size for array in network.arrays.values())


def _time_peer(run: Run, n_features: int, n_rows: int, clock: Clock, *, device: str) -> int:
    """Time NAM or NA²M. Return its number of parameters."""
    import torch

    from benchmarks.models.networks.additive import NAM
    from benchmarks.models.networks.training import Rows, run_epoch
    from benchmarks.models.recipe import Recipe

    torch.manual_seed(run.seed)
    recipe = Recipe(max_epochs=clock.n_epochs, batch_size=BATCH, learning_rate=2e-3, output_penalty=1e-4)
    network = NAM(n_features, 1, has_pairs=run.model == "na2m").to(device)
    random = torch.Generator().manual_seed(run.seed)
    x = torch.randn(n_rows, n_features, generator=random)
    rows = Rows(x, x[:, 0] + torch.randn(n_rows, generator=random)).to(torch.device(device))
    optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    started = time.monotonic()
    while True:
        run_epoch(network, rows, optimizer, recipe, random)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        if clock(seconds=time.monotonic() - started):
            return sum(parameter.numel() for parameter in network.parameters())


def _config(n_experts: int, hidden_dim: int, variant: str) -> "NetworkConfig":
    from nae.estimators.settings import resolve
    from nae.parameters import Parameters

    parameters = Parameters(encoder="mlp", n_experts=n_experts, n_members=1, n_blocks=N_BLOCKS, hidden_dim=hidden_dim)
    own = replace(parameters, variant="nae-d") if variant == "nae-d" else replace(parameters, gate="additive")
    return resolve(own, n_rows=COST_ROWS, n_features=1).network


def _network(n_features: int, config: "NetworkConfig") -> "Network":
    from nae.network import draw_network

    return draw_network(config, np.zeros((n_features, 2, 1)), 1, random=np.random.default_rng(0))


def _made(
    n_features: int, n_experts: int, n_rows: int, hidden: int, *, is_paper: bool
) -> "tuple[Network, TrainingRows]":
    """Return a network and its rows: that of the paper, or the default with eight members."""
    from nae.encoding import Cells, Columns, build_schema, infer_kinds
    from nae.estimators.settings import resolve
    from nae.network import draw_network, piecewise_inputs
    from nae.parameters import Parameters
    from nae.training import TrainingRows
    from nae.training.assemble import padded_slots

    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, n_features))
    columns = Columns(tuple(X.T))
    settings = resolve(Parameters(n_experts=n_experts, hidden_dim=32), n_rows=n_rows, n_features=n_features)
    n_knots = PAPER_RECIPE.narrow_knots if is_paper else settings.n_knots
    schema = build_schema(columns, infer_kinds(columns), np.ones(n_rows), n_knots=n_knots)
    cells = schema.locate(columns, dtype=np.float32)
    rows = TrainingRows(
        Cells(padded_slots(schema)[cells.slot], cells.fraction),
        X[:, :1].astype(np.float32),
        np.ones(n_rows, dtype=np.float32),
        None,
    )
    if is_paper:
        # One number per knot, like the paper's quantile transform, but without scikit-learn.
        config, inputs = _config(n_experts, hidden, "nae"), piecewise_inputs(schema, 1)[:, :, :1]
    else:
        config, inputs = settings.network, piecewise_inputs(schema, settings.n_ramps)
    return draw_network(config, inputs, 1, random=random), rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Time the runs that have not been timed."""
    from benchmarks.paper.costs import timed_runs

    parser = argparse.ArgumentParser(description="Time the trainings of 'cost' that have not been timed yet.")
    parser.add_argument("folder", type=Path, help="a store of runs; what is there is not timed again")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which a run begins no further epoch")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no run is begun")
    parser.add_argument("--smoke", action="store_true", help="few rows, two epochs: does it work at all")
    given = parser.parse_args(arguments)
    store, started = RunStore(given.folder), time.monotonic()
    kept = {report.run.path for report in Archive(KEPT).reports() if report.is_done}
    for run in timed_runs():
        chosen = run.smoke() if given.smoke else run
        if chosen.path in kept or store.is_done(chosen) or time.monotonic() - started > given.budget:
            continue
        store.begin(chosen)
        report = time_training(chosen, device=given.device, limit=given.limit)
        store.finish(report)
        print(
            f"{time.monotonic() - started:6.1f} s  {chosen.path}: {report.fit_seconds:.2f} s "
            f"({report.n_epochs} epochs run)",
            flush=True,
        )


if __name__ == "__main__":
    main()
