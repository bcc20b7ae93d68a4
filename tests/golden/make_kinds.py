"""Writes a file of every kind of model that ``make_format_1`` does not write, with all parts of the newest format.

Files that are there are never written again: ``python -m tests.golden.make_kinds``.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nae.encoding import Category, Number
from nae.tables import TableModel, save
from nae.tables.archive import FORMAT
from tests.laws.models import make_model, with_doubts

FOLDER = Path(__file__).parent
FEATURES = (
    Number("size", np.array([0.0, 0.5, 2.0]), has_missing=True),
    Category("kind", ("oak", "pine"), ("rare wood", "raw wood")),
)
ROWS = {"size": [0.0, 0.25, 7.0, None], "kind": ["oak", "rare wood", None, "never seen"]}
KINDS: dict[str, dict[str, Any]] = {
    "additive": {"gate": "additive", "routing": "equal", "n_active": 2, "dtype": np.float32},
    "deep": {"gate": "deep", "link": "log", "n_outputs": 2},
    "diagonal": {"gate": "diagonal", "link": "logit", "n_members": 2, "dtype": np.float32},
    "one-expert": {"gate": "additive", "n_experts": 1},
}


def answers(model: TableModel, rows: dict[str, list[Any]]) -> dict[str, Any]:
    """Return what a model says of rows."""
    found = model.contributions(rows)
    said = model.predict_proba(rows) if model.classes else model.predict(rows)
    parts = {"contributions": found.values, "lower": found.lower, "upper": found.upper, "predictions": said}
    return {"rows": rows, **{name: np.asarray(values).tolist() for name, values in parts.items()}}


def main() -> None:
    """Write the files that are not there."""
    for name, shape in KINDS.items():
        path = FOLDER / f"format_{FORMAT}_{name}.nae"
        if path.exists():
            continue
        model = make_model(np.random.default_rng(1), features=FEATURES, is_clamped=True, **shape)
        if model.classes:
            model = replace(model, class_weight=(1.0, 2.5))
        model = with_doubts(model, np.random.default_rng(2))
        save(model, path, extra={"note": "golden"})
        path.with_suffix(".json").write_text(json.dumps(answers(model, ROWS), indent=1) + "\n")


if __name__ == "__main__":
    main()
