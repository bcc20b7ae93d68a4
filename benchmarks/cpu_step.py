"""Measure the time of a training step on a CPU.

Run as a module::

    python -m benchmarks.cpu_step --out benchmarks/results/cpu_step.json

The sizes are those that the defaults choose for some tables of the suite.
"""

import argparse
import json
from pathlib import Path

from benchmarks.gpu_step import step_seconds
from nae._processes import count_threads

__all__ = ["SIZES", "main"]

SIZES = {
    "Housing": {"n_features": 8, "n_experts": 8, "hidden_dim": 32, "batch_size": 512, "n_knots": 128},
    "Bank marketing": {"n_features": 16, "n_experts": 16, "hidden_dim": 64, "batch_size": 512, "n_knots": 128},
    "Beijing air": {"n_features": 16, "n_experts": 16, "hidden_dim": 64, "batch_size": 1024, "n_knots": 128},
    "Ames": {"n_features": 79, "n_experts": 8, "hidden_dim": 32, "batch_size": 256, "n_knots": 103},
    "Blog feedback": {"n_features": 280, "n_experts": 8, "hidden_dim": 32, "batch_size": 512, "n_knots": 32},
}


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=count_threads())
    parser.add_argument("--engine", choices=("auto", "native", "torch"), default="auto")
    parser.add_argument("--steps", type=int, default=40, help="number of steps to measure per table")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    table = []
    for name, size in SIZES.items():
        # Three epochs, the first of which is the warm-up.
        setup = {**size, "n_rows": given.steps * size["batch_size"], "n_members": 8, "gate_rank": 32, "n_epochs": 3}
        milliseconds = 1e3 * step_seconds(**setup, device="cpu", engine=given.engine, n_threads=given.threads)
        table.append({"table": name, **size, "ms": milliseconds})
        print(f"{name:<16} {milliseconds:8.1f} ms")
    if given.out:
        found = {"engine": given.engine, "threads": given.threads, "members": 8, "steps": table}
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
