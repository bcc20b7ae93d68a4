"""Measure the time of a training step, for the sizes at which the official implementation was measured.

Run as a module::

    python -m benchmarks.gpu_step --device cuda --out benchmarks/results/gpu_step.json

The official code on the same kind of GPU: 14.9 ms at 32 features and 200 ms at 512, both with batches of 512.
"""

import argparse
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from nae.encoding import Cells, Columns, build_schema, infer_kinds
from nae.engines import choose_place, make_engine
from nae.estimators.settings import resolve
from nae.network import draw_network, piecewise_inputs
from nae.parameters import Parameters
from nae.training import Job, TrainingRows, make_loss, train
from nae.training.assemble import padded_slots

__all__ = ["main", "step_seconds"]


def step_seconds(
    n_features: int,
    *,
    n_experts: int,
    n_members: int,
    batch_size: int,
    n_rows: int,
    device: str,
    n_epochs: int = 6,
    hidden_dim: int = 32,
    gate_rank: int = 64,
    n_knots: int = 128,
    engine: str = "auto",
    n_threads: int | None = None,
) -> float:
    """Return the seconds of one step, including everything around it, after the first epoch."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, n_features))
    columns = Columns(tuple(X.T))
    schema = build_schema(columns, infer_kinds(columns), np.ones(n_rows), n_knots=n_knots)
    cells = schema.locate(columns, dtype=np.float32)
    rows = TrainingRows(
        Cells(padded_slots(schema)[cells.slot], cells.fraction),
        X[:, :1].astype(np.float32),
        np.ones(n_rows, dtype=np.float32),
        None,
    )
    parameters = Parameters(
        n_experts=n_experts,
        n_members=n_members,
        hidden_dim=hidden_dim,
        gate_rank=gate_rank,
        batch_size=batch_size,
        max_epochs=n_epochs,
    )
    settings = resolve(parameters, n_rows=n_rows, n_features=n_features)
    random, loss = np.random.default_rng(0), make_loss("squared")
    network = draw_network(settings.network, piecewise_inputs(schema, settings.n_ramps), 1, random=random)
    training = replace(settings.training, n_folds=None)  # no row is held out
    place = choose_place(engine, device, network=settings.network, loss=loss)
    job = Job(network, rows, None, loss, training, random, n_threads=n_threads)
    with closing(make_engine(place, job)) as made:
        seconds = train(made, training).column("seconds")
    return float(seconds[-1] - seconds[0]) / ((n_epochs - 1) * round(n_rows / batch_size))


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    table = []
    for n_features, n_members, batch_size in ((8, 8, 512), (32, 1, 512), (32, 8, 512), (512, 1, 512), (90, 8, 1024)):
        milliseconds = 1e3 * step_seconds(
            n_features, n_experts=4, n_members=n_members, batch_size=batch_size, n_rows=20_480, device=given.device
        )
        table.append(
            {"features": n_features, "members": n_members, "batch": batch_size, "experts": 4, "ms": milliseconds}
        )
        print(f"{n_features:>4} features  {n_members} members  batch {batch_size:>4}  {milliseconds:8.2f} ms")
    if given.out:
        device = torch.cuda.get_device_name() if given.device.startswith("cuda") else "CPU"
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(
            json.dumps({"device": device, "torch": torch.__version__, "steps": table}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
