"""The score of a model of two classes, for either class: its sign differs, the probabilities are the same."""

from dataclasses import replace

import numpy as np

from nae.errors import UserError, did_you_mean
from nae.tables.model import TableModel
from nae.tables.promises import mirrored_promises
from nae.tables.statistics import Statistics
from nae.tables.summary import TrainingSummary

__all__ = ["speaking_for"]


def speaking_for(model: TableModel, name: str) -> TableModel:
    """Return the model whose score is the log-odds of the class called ``name``.

    For the second class this is the model itself. For the first class, all contributions change their sign, and lower
    and upper bounds are exchanged. The probabilities stay the same.
    """
    if len(model.classes) != 2:
        what = f"{len(model.classes)} classes, each with a score of its own" if model.classes else "no classes"
        raise UserError(f"Only a model of two classes has a score for either class; this one has {what}.")
    if name not in model.classes:
        raise UserError(f"The model has no class {name!r}.{did_you_mean(name, model.classes)}")
    return model if name == model.classes[1] else _mirrored(model)


def _mirrored(model: TableModel) -> TableModel:
    found = replace(
        model,
        experts=0 - model.experts,  # 0 - 0.0 is 0.0, and -(0.0) would be -0.0
        intercept=0 - model.intercept,
        outputs=model.classes[:1],
        classes=model.classes[::-1],
        class_weight=model.class_weight[::-1],
        statistics=None if model.statistics is None else _mirrored_statistics(model.statistics),
        clamps=None if model.clamps is None else model.clamps.mirrored(),
        evidence=None if model.evidence is None else model.evidence.mirrored(),
        training=_mirrored_training(model.training),
        kernel=None,
    )
    return found if model.kernel is None else found.compile()


def _mirrored_statistics(statistics: Statistics) -> Statistics:
    """Return the statistics of the negative contributions. Weights and variances stay the same."""
    quantiles = np.ascontiguousarray(0 - statistics.quantiles[::-1])  # the probabilities of the quantiles are symmetric
    return replace(statistics, mean=0 - statistics.mean, quantiles=quantiles)


def _mirrored_training(training: TrainingSummary) -> TrainingSummary:
    """Return the summary with the shares of the classes in their new order, and signs and directions turned."""
    found = training
    if training.baseline is not None:
        found = replace(found, baseline={**training.baseline, "values": training.baseline["values"][::-1]})
    if training.intercept_shift is not None:
        found = replace(found, intercept_shift=tuple(0 - shift for shift in training.intercept_shift))
    if training.constraints is not None:
        found = replace(found, constraints=mirrored_promises(training.constraints))
    return found
