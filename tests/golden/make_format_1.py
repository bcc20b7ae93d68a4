"""Writes ``format_1.nae`` and what it must predict. Run once per format; the files are never written again.

python -m tests.golden.make_format_1
"""

import json
from pathlib import Path

import numpy as np

from nae.encoding import Category, Columns, Number, Schema
from nae.explanation import with_statistics
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel, TrainingSummary, save

FOLDER = Path(__file__).parent
ROWS = {
    "size": [0.0, 0.25, 7.0, None, -3.0, 2.5],
    "is_new": [True, False, None, True, False, True],
    "kind": ["oak", "pine", "rare wood", None, "never seen", "oak"],
}


def make_model() -> TableModel:
    """Return a small classifier with every kind of feature, two members and a low-rank gate."""
    random = np.random.default_rng(1)
    schema = Schema(
        (
            Number("size", np.array([0.0, 0.5, 2.0, 5.0]), has_missing=True, reason="numeric column"),
            Number("is_new", np.array([0.0, 1.0]), is_boolean=True, reason="true or false", integral=True),
            Category("kind", ("oak", "pine"), ("rare wood", "raw wood"), has_missing=True, reason="text"),
        )
    )
    n_slots, width, n_logits = schema.n_slots, 4, 9

    def draw(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    model = TableModel(
        schema=schema,
        experts=draw(n_slots, 3, 3, 2),
        gate=GateTables(
            "low-rank", draw(n_slots, width, 2), draw(width, 2), draw(2, width, n_logits), draw(n_logits, 2)
        ),
        routing=SoftmaxRouting(2),
        intercept=np.array([0.5, -0.25, -0.25]),
        link=LINKS["softmax"],
        outputs=("low", "middle", "high"),
        classes=("low", "middle", "high"),
        training=TrainingSummary(n_rows=6, more={"note": "made by hand"}),
    )
    table = Columns(tuple(np.array(column, dtype=object) for column in ROWS.values()), tuple(ROWS))
    return with_statistics(model, table)


def write(model: TableModel, name: str) -> None:
    """Write a model, and what it must predict."""
    save(model, FOLDER / f"{name}.nae", extra={"note": "golden"})
    found = model.contributions(ROWS)
    answers = {
        "rows": ROWS,
        "probabilities": model.predict_proba(ROWS).tolist(),
        "contributions": found.values.tolist(),
        "lower": found.lower.tolist(),
        "upper": found.upper.tolist(),
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    write(make_model(), "format_1")
