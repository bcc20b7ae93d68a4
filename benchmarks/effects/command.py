"""Confidence of effects: how often bands hold the true curve, and how often noise is taken for more."""

import argparse
import json
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.effects.page import render
from benchmarks.effects.simulations import CASES, Case, Drawn, draw
from benchmarks.effects.verdicts import chances
from benchmarks.run import own_version
from nae import NAEClassifier, NAERegressor
from nae.tables import TableModel
from nae.tables.lookup import interpolate

__all__ = ["COVERAGES", "Trial", "add_command", "measure"]

COVERAGES = (0.8, 0.9, 0.95)
_SURE = 1.645  # standard deviations of the members, for 90 %


@dataclass(frozen=True)
class Trial:
    """One fit of one drawn table."""

    case: str
    seed: int
    version: str
    covered: list[float]  # by coverage: the share of true effects within the bands, over features and rows
    members: float  # the same for a band of 1.645 standard deviations of the members around their mean
    width: float  # half the width of the 90 % band, beside the standard deviation of the score
    seconds: float


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser("effects", help=__doc__, description=__doc__)
    parser.add_argument("--draws", type=int, default=20, help="tables per case")
    parser.add_argument("--verdicts", type=int, default=60, help="further tables per case, without a network")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many; a later run goes on")
    parser.add_argument("--store", type=Path, default=Path("runs/effects.jsonl"), help="fits in it are not repeated")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/effects.md"), help="the page to write")
    parser.set_defaults(run=run_effects)


def run_effects(given: argparse.Namespace) -> None:
    """Do the missing fits, and write the page."""
    version, until = own_version(), time.monotonic() + given.seconds
    known = _read(given.store, version)
    given.store.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(given.draws):
        for case in CASES:
            if (case.label, seed) in known or time.monotonic() > until:
                continue
            found = measure(case, seed, version=version)
            known[case.label, seed] = found
            with given.store.open("a") as file:
                file.write(json.dumps(asdict(found)) + "\n")
            print(f"{case.label:<34} {seed:3d}  {found.covered[1]:.3f}  {found.seconds:5.1f} s", flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    verdicts = {case.label: _verdicts(case, given) for case in CASES}
    given.out.write_text(render(list(known.values()), verdicts))
    print(f"wrote {given.out}")


def _verdicts(case: Case, given: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Return the chances of idle features and of all others, of tables that no network has seen."""
    found = [chances(case, 1000 + seed) for seed in range(given.verdicts)]
    return [one for idle, _ in found for one in idle], [one for _, others in found for one in others]


def _read(store: Path, version: str) -> dict[tuple[str, int], Trial]:
    lines = store.read_text().splitlines() if store.exists() else []
    known = {item.name for item in fields(Trial)}
    trials = [Trial(**{name: value for name, value in json.loads(line).items() if name in known}) for line in lines]
    return {(one.case, one.seed): one for one in trials if one.version == version}


def measure(case: Case, seed: int, *, version: str = "", **parameters: Any) -> Trial:
    """Fit the defaults, or what ``parameters`` say, to one table with one thread."""
    drawn = draw(case, seed)
    start = time.perf_counter()
    parameters = {"random_state": seed, "n_jobs": 1} | parameters
    fitted: Any = NAEClassifier(**parameters) if case.loss == "logistic" else NAERegressor(case.loss, **parameters)
    model = fitted.fit(drawn.X, drawn.y).model_
    seconds = time.perf_counter() - start
    return Trial(
        case=case.label,
        seed=seed,
        version=version,
        covered=[_covered(model, drawn, coverage) for coverage in COVERAGES],
        members=_covered_by_members(model, drawn),
        width=_width(model, drawn),
        seconds=seconds,
    )


def _covered(model: TableModel, drawn: Drawn, coverage: float) -> float:
    lower, upper = _band(model, drawn, coverage)
    truth = np.stack([drawn.effects[name] for name in model.feature_names], axis=1)
    return float(np.mean((lower <= truth) & (truth <= upper)))


def _band(model: TableModel, drawn: Drawn, coverage: float) -> list[Any]:
    """Return the ends of the bands at every row, (row, feature) each."""
    ends = model.evidence.band(model.statistics.mean.astype(np.float64), coverage)
    cells = model.cells(drawn.X)
    return [interpolate(end, cells)[..., 0] for end in ends]


def _width(model: TableModel, drawn: Drawn) -> float:
    lower, upper = _band(model, drawn, 0.9)
    return float(np.mean(upper - lower) / 2 / max(model.statistics.score_variance[0] ** 0.5, 1e-12))


def _covered_by_members(model: TableModel, drawn: Drawn) -> float:
    found, cells = [], model.cells(drawn.X)
    for i, shape in enumerate(model.explain_global().features):
        order = np.array([shape.labels.index(label) for label in model.schema.features[i].labels])
        spread = np.zeros(model.schema.n_slots)
        spread[model.schema.slots(i)] = shape.member_spread[order, 0]
        reach, mean = (interpolate(one, cells)[:, i] for one in (spread, model.statistics.mean[:, 0]))
        found.append(np.abs(drawn.effects[shape.name] - mean) <= _SURE * reach)
    return float(np.mean(found))
