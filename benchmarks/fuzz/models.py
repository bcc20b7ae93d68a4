"""Small models of every kind, made without training, for fuzzing of files, the server and the evaluators."""

from dataclasses import replace
from itertools import product

import numpy as np

from nae.encoding import Category, Feature, Number
from nae.explanation import with_statistics
from nae.tables import TableModel
from nae.tables.gates import GATES
from nae.tables.routing import ROUTINGS
from tests.laws.models import make_model, make_table

__all__ = ["SUMMARY", "random_model", "small_models"]

FEATURES: tuple[Feature, ...] = (
    Number("size", np.array([-1.0, 0.0, 2.5]), has_missing=True, reason="numeric column"),
    Category("kind", ("oak", "pine"), ("elm", "yew"), has_missing=True, reason="text"),
    Number("is new", np.array([0.0, 1.0]), is_boolean=True, integral=True, reason="true or false"),
    Number("rooms", np.array([1.0, 2.0, 3.0]), integral=True),
    Number("always seven", np.array([7.0])),
    Category("ümläut \U0001f600", ("", "1", "None")),
    Number("nothing", np.zeros(1), has_missing=True, reason="no value at all"),
)
# Every entry of a training summary that the library reads, and one unknown entry.
SUMMARY = {
    "loss": "huber",
    "quantile": 0.5,
    "tweedie_power": 1.5,
    "huber_threshold": [1.5],
    "intercept_shift": [0.25],
    "baseline": {"values": [0.5], "level": None},
    "offset": ["log exposure"],
    "weight": "weight",
    "target": "price",
    "n_rows": 40,
    "n_validation_rows": 10,
    "n_test_rows": 10,
    "validation_loss": 0.25,
    "quality": {"RMSE": 0.5, "R²": 0.25},
    "baseline_quality": {"RMSE": 1.0},
    "quality_intervals": {"RMSE": [0.25, 0.75]},
    "split": {"rows_sha256": "0" * 64, "test_size": 0.2, "seed": 1},
    "note": {"any": ["thing", 1, None, True]},
}
_LINKS = {"identity": (1, 3), "log": (1, 2), "logit": (1,), "softmax": (3, 4)}


def small_models() -> list[TableModel]:
    """Return models of every gate, routing, link and number type, with and without the optional parts of a file."""
    random = np.random.default_rng(17)
    shapes = [
        *product(GATES, sorted(ROUTINGS), ("identity",), (np.float32, np.float64)),
        *product(("additive", "low-rank"), ("softmax",), ("log", "logit", "softmax"), (np.float32,)),
    ]
    models = []
    for i, (gate, routing, link, dtype) in enumerate(shapes):
        chosen = tuple(FEATURES[j] for j in random.choice(len(FEATURES), random.integers(1, 5), replace=False))
        n_experts = int(random.integers(1, 4))
        model = make_model(
            random,
            features=chosen,
            n_experts=n_experts,
            n_active=int(random.integers(1, n_experts + 1)),
            n_outputs=int(random.choice(_LINKS[link])),
            n_members=int(random.choice([1, 1, 2, 5])),
            gate=gate,
            routing=routing,
            link=link,
            dtype=dtype,
        )
        models.append(_with_parts(model, random, i))
    return models


def random_model(random: np.random.Generator) -> TableModel:
    """Return a model of a random shape."""
    link = str(random.choice(list(_LINKS)))
    n_experts = int(random.integers(1, 5))
    return make_model(
        random,
        n_features=int(random.integers(1, 6)),
        n_experts=n_experts,
        n_active=int(random.integers(1, n_experts + 1)),
        n_outputs=int(random.choice(_LINKS[link])),
        n_members=int(random.integers(1, 4)),
        gate=str(random.choice(sorted(GATES))),
        routing=str(random.choice(sorted(ROUTINGS))),
        link=link,
        scale=float(random.choice([0.0, 1.0, 30.0, 1e4])),
        dtype=(np.float32, np.float64)[int(random.integers(2))],
    )


def _with_parts(model: TableModel, random: np.random.Generator, i: int) -> TableModel:
    """Return the model, at random with statistics, class weights and a training summary."""
    if i % 5 < 3:
        model = with_statistics(model, make_table(random, model.schema, 12))
    if i % 3 == 0:
        model = model.with_training(**SUMMARY)
    if model.classes and i % 2 == 0:
        model = replace(model, class_weight=tuple(0.5 + j for j in range(len(model.classes))))
    return model
