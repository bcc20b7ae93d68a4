"""Measure the time of certificates: ``python -m benchmarks.certify_speed``.

It certifies statements about one feature that keeps them, and about one that breaks them, so that two inputs are
searched for. Then it compares the model with one whose experts moved, and caps a feature. The page of guarantees has
the seconds.

The models have 8 features (as Housing has) or 280, 8 experts, 8 members, and an additive or a low-rank gate. Their
tables are random, so nothing must be trained: times do not depend on what was learned.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import nae
from benchmarks.guarantees.record import FOLDER, Record
from benchmarks.run import own_version
from nae.encoding import Number, Schema
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel

N_EXPERTS, N_MEMBERS, RANK = 8, 8, 64
MODELS = ((8, "additive", 128), (280, "low-rank", 32), (280, "additive", 32))  # features, gate, knots
STATEMENTS: dict[str, Any] = {
    "monotone": lambda name: {"monotone": {name: "+"}},
    "max effect": lambda name: {"max_effect": {name: 1e9 if name == "x0" else 0.0}},
    "isolated": lambda name: {"isolated": [name]},
    "unchanged": lambda name: {"unchanged": [name]},
    "curved": lambda name: {"curved": {name: "convex"}},
}


@dataclass(frozen=True)
class Timed:
    """The seconds of one kind of work with a model: a tuple of the proven and the refuted statement, or of one."""

    model: str
    work: str
    seconds: tuple[float, ...]
    version: str


def main() -> None:
    """Record and print the seconds for every model, and write the page."""
    from benchmarks.guarantees.page import write_page

    parser = argparse.ArgumentParser(prog="python -m benchmarks.certify_speed", description=__doc__)
    parser.add_argument("--record", type=Path, default=FOLDER / "certify.json", help="the file of results")
    given = parser.parse_args()
    record = Record(given.record)
    for n_features, gate, n_knots in MODELS:
        model = _model(np.random.default_rng(0), n_features, gate, n_knots)
        for name, work in _works(model):
            label = f"{n_features} features, {gate} gate"
            found = Timed(label, name, tuple(map(_seconds, work)), own_version())
            record.put(f"{label}/{name}", found)
            print(f"{label:<28} {name:<12} {' / '.join(f'{each:.2f}' for each in found.seconds)} s", flush=True)
    write_page(given.record.parent)


def _works(model: TableModel) -> Iterator[tuple[str, tuple[Callable[[], object], ...]]]:
    for name, statement in STATEMENTS.items():
        yield name, tuple(_certify(model, statement(feature)) for feature in ("x0", "x1"))
    for name, work in OTHERS.items():
        yield name, (work(model),)


def _certify(model: TableModel, statement: dict[str, Any]) -> Callable[[], object]:
    return lambda: model.certify(**statement)


def _compare(model: TableModel) -> Callable[[], object]:
    moved = replace(model, experts=model.experts + np.float32(0.01) * np.sign(model.experts))
    return lambda: nae.compare(model, moved).certificate()


def _cap(model: TableModel) -> Callable[[], object]:
    return lambda: nae.edit(model, who="benchmark", why="time").cap("x1", 0.1)


OTHERS = {"compare": _compare, "an edit": _cap}


def _seconds(work: Callable[[], object]) -> float:
    found = []
    for _ in range(3):  # the shortest one counts, because other processes may use the machine
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def _model(random: np.random.Generator, n_features: int, kind: str, n_knots: int) -> TableModel:
    """Return a model whose first feature is convex, increases and stands alone; other features do nothing of this."""
    schema = Schema(tuple(Number(f"x{i}", np.arange(float(n_knots))) for i in range(n_features)))
    n_logits = N_EXPERTS * n_features
    width = RANK if kind == "low-rank" else n_logits

    def draw(*shape: int) -> np.ndarray:
        return 0.3 * random.standard_normal(shape, dtype=np.float32)

    mix = (draw(N_MEMBERS, width, n_logits), draw(n_logits, N_MEMBERS)) if kind == "low-rank" else (None, None)
    gate = GateTables(kind, draw(schema.n_slots, width, N_MEMBERS), draw(width, N_MEMBERS), *mix)
    experts = draw(schema.n_slots, N_EXPERTS, 1, N_MEMBERS)
    own = schema.slots(0)
    gate.terms[own] = 0.0
    slopes = np.sort(np.abs(experts[own][:, :1]), axis=0)
    experts[own] = np.cumsum(slopes, axis=0)
    return TableModel(schema, experts, gate, SoftmaxRouting(N_EXPERTS), np.zeros(1), LINKS["identity"])


if __name__ == "__main__":
    main()
