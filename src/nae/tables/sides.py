"""The two sides of a model of two classes: the same probabilities, as evidence for the one or for the other."""

from dataclasses import replace

import numpy as np

from nae.errors import UserError, did_you_mean
from nae.tables.model import TableModel
from nae.tables.statistics import Statistics
from nae.tables.summary import TrainingSummary

__all__ = ["speaking_for"]


def speaking_for(model: TableModel, name: str) -> TableModel:
    """Return the model whose score is the log-odds of the class called ``name``: as it is, or its mirror image.

    In the mirror image contributions are the negatives, and lower and upper bounds change places; every probability
    stays what it is.
    """
    if len(model.classes) != 2:
        what = f"{len(model.classes)} classes, each with a score of its own" if model.classes else "no classes"
        raise UserError(f"Only a model of two classes can speak for either of them; this one has {what}.")
    if name not in model.classes:
        raise UserError(f"The model has no class {name!r}.{did_you_mean(name, model.classes)}")
    return model if name == model.classes[1] else _mirrored(model)


def _mirrored(model: TableModel) -> TableModel:
    found = replace(
        model,
        experts=0 - model.experts,  # not -0.0 where an expert says nothing
        intercept=0 - model.intercept,
        outputs=model.classes[:1],
        classes=model.classes[::-1],
        class_weight=model.class_weight[::-1],
        statistics=None if model.statistics is None else _mirrored_statistics(model.statistics),
        training=_mirrored_training(model.training),
        kernel=None,
    )
    return found if model.kernel is None else found.compile()


def _mirrored_statistics(statistics: Statistics) -> Statistics:
    """Return the statistics of the negative contributions: of what has no sign, nothing changes."""
    quantiles = np.ascontiguousarray(0 - statistics.quantiles[::-1])  # as many above as below
    return replace(statistics, mean=0 - statistics.mean, quantiles=quantiles)


def _mirrored_training(training: TrainingSummary) -> TrainingSummary:
    """Return the summary with the shares of the classes in their new order, and the shift of the intercept turned."""
    found = training
    if training.baseline is not None:
        found = replace(found, baseline={**training.baseline, "values": training.baseline["values"][::-1]})
    if training.intercept_shift is not None:
        found = replace(found, intercept_shift=tuple(0 - shift for shift in training.intercept_shift))
    return found
