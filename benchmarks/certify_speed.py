"""Measure the time of certificates: ``python -m benchmarks.certify_speed``.

It certifies statements about one feature that keeps them, and about one that breaks them, so that two inputs are
searched for. Then it compares the model with one whose experts moved, and caps a feature.

The models have 8 features (as Housing has) or 280, 8 experts, 8 members, and an additive or a low-rank gate. Their
tables are random, so nothing must be trained: times do not depend on what was learned.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import nae
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


def main() -> None:
    """Print a table of seconds for every model."""
    argparse.ArgumentParser(prog="python -m benchmarks.certify_speed", description=__doc__).parse_args()
    print("| model | statement | proven, s | refuted, s |\n|---|---|---|---|")
    for n_features, gate, n_knots in MODELS:
        model = _model(np.random.default_rng(0), n_features, gate, n_knots)
        for name, statement in STATEMENTS.items():
            times = " | ".join(f"{_seconds(_certify(model, statement(feature))):.2f}" for feature in ("x0", "x1"))
            print(f"| {n_features} features, {gate} gate | {name} | {times} |", flush=True)
    print("\n| model | compare, s | an edit, s |\n|---|---|---|")
    for n_features, gate, n_knots in MODELS:
        model = _model(np.random.default_rng(0), n_features, gate, n_knots)
        times = " | ".join(f"{_seconds(work):.2f}" for work in (_compare(model), _cap(model)))
        print(f"| {n_features} features, {gate} gate | {times} |", flush=True)


def _certify(model: TableModel, statement: dict[str, Any]) -> Callable[[], object]:
    return lambda: model.certify(**statement)


def _compare(model: TableModel) -> Callable[[], object]:
    moved = replace(model, experts=model.experts + np.float32(0.01) * np.sign(model.experts))
    return lambda: nae.compare(model, moved).certificate()


def _cap(model: TableModel) -> Callable[[], object]:
    return lambda: nae.edit(model, who="benchmark", why="time").cap("x1", 0.1)


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
