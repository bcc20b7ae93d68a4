"""Measure the time of explanations: ``python -m benchmarks.explain_speed``.

It times a global explanation, local explanations of up to 40,000 rows, a pair and a three-way view, for a model with 8
features, 8 experts and 8 members, and for one with 280 features. The tables of the models are random, so nothing must
be trained: times do not depend on what was learned.
"""

import time
from collections.abc import Callable

import numpy as np

from nae.encoding import Columns, Number, Schema
from nae.explanation import with_statistics
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel

N_KNOTS, N_EXPERTS, N_MEMBERS, RANK = 128, 8, 8, 64


def main() -> None:
    """Print a table of seconds."""
    random = np.random.default_rng(0)
    print("| what | 8 features, s | 280 features, s |\n|---|---|---|")
    models = [_model(random, 8), _model(random, 280)]
    rows = [_rows(random, 8, 40_000), _rows(random, 280, 1_000)]
    for what, call in _calls():
        found = [_seconds(call, model, table) for model, table in zip(models, rows, strict=True)]
        print(f"| {what} | {found[0]:.3f} | {found[1]:.3f} |")
    print("\n| rows | local explanations of 8 features, s | microseconds a row |\n|---|---|---|")
    for n_rows in (1_000, 2_500, 5_000, 10_000, 20_000, 40_000):
        table = rows[0].take(np.arange(n_rows))
        seconds = _best(lambda table=table: models[0].explain_local(table))  # type: ignore[misc]
        print(f"| {n_rows:,} | {seconds:.3f} | {1e6 * seconds / n_rows:.0f} |")


def _calls() -> list[tuple[str, Callable[[TableModel, Columns], object]]]:
    return [
        ("global explanation", lambda model, _: model.explain_global()),
        ("global explanation with 1,000 dots", lambda model, rows: model.explain_global(rows)),
        ("1,000 local explanations", lambda model, rows: model.explain_local(rows.take(np.arange(1_000)))),
        ("pair of features", lambda model, _: model.explain_interaction("x0", "x1")),
        ("three features", lambda model, _: model.explain_interaction("x0", "x1", "x2")),
        ("interaction matrix", lambda model, _: model.interaction_strength()),
        ("effect caps", lambda model, _: model.effect_caps_),
    ]


def _seconds(call: Callable[[TableModel, Columns], object], model: TableModel, rows: Columns) -> float:
    return _best(lambda: call(model, rows))


def _best(call: Callable[[], object]) -> float:
    """Return the shortest of three times, because other processes may use the machine."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def _model(random: np.random.Generator, n_features: int) -> TableModel:
    features = tuple(Number(f"x{i}", np.sort(random.normal(size=N_KNOTS))) for i in range(n_features))
    schema = Schema(features)
    is_wide = n_features * N_EXPERTS > 2 * RANK
    width = RANK if is_wide else n_features * N_EXPERTS

    def draw(*shape: int) -> np.ndarray:
        return random.normal(size=shape, scale=0.3).astype(np.float32)

    gate = GateTables(
        "low-rank" if is_wide else "additive",
        draw(schema.n_slots, width, N_MEMBERS),
        draw(width, N_MEMBERS),
        draw(N_MEMBERS, width, N_EXPERTS * n_features) if is_wide else None,
        draw(N_EXPERTS * n_features, N_MEMBERS) if is_wide else None,
    )
    experts = draw(schema.n_slots, N_EXPERTS, 1, N_MEMBERS)
    model = TableModel(schema, experts, gate, SoftmaxRouting(N_EXPERTS), np.zeros(1), LINKS["identity"])
    return with_statistics(model, _rows(random, n_features, 500))


def _rows(random: np.random.Generator, n_features: int, n_rows: int) -> Columns:
    return Columns(
        tuple(random.normal(size=n_rows) for _ in range(n_features)), tuple(f"x{i}" for i in range(n_features))
    )


if __name__ == "__main__":
    main()
