"""Constraints of a fit: read from the parameters, checked against the table, and what they ask of the network."""

from dataclasses import replace

from nae._typing import Array
from nae.constraints import Asked, Constraints, Score, find_leaders, needs_logits, read_constraints, read_smoothness
from nae.encoding import Schema
from nae.errors import ConfigError
from nae.estimators.rows import Task
from nae.estimators.settings import Settings
from nae.links import link_named
from nae.network import ENCODERS
from nae.parameters import Parameters
from nae.recipes import NUMBERS

__all__ = ["constrain", "score_of", "smoothness_of"]

_MATRIX_GATES = ("low-rank", "deep")


def constrain(
    parameters: Parameters, settings: Settings, schema: Schema, task: Task
) -> tuple[Settings, Constraints | None]:
    """Return settings under which the constraints can be kept, and the constraints; None if nothing is asked for."""
    asked = Asked(**{name: getattr(parameters, name) for name in Asked.__dataclass_fields__})
    has_exact_tables = ENCODERS[settings.network.encoder].has_exact_tables
    sorts_outputs = bool(task.loss.levels)
    if asked.is_empty and not sorts_outputs:
        return settings, None
    if not has_exact_tables and not asked.is_empty:
        raise ConfigError(f"Constraints need encoder='piecewise', whose tables are exact; got {parameters.encoder!r}.")
    constraints = read_constraints(asked, schema, is_log=_is_log(task), n_classes=len(task.classes))
    if constraints.curved and sorts_outputs:
        raise ConfigError(
            f"A curve that bends needs a model of one quantile; got {len(task.loss.levels)} of them, whose order would "
            "break the bend. Leave out convex and concave, or fit one model per quantile."
        )
    constraints = replace(constraints, sorts_outputs=sorts_outputs)
    if constraints.is_empty:
        return settings, None
    network = settings.network
    if network.gate in _MATRIX_GATES and needs_logits(constraints, network.n_members):
        if parameters.gate != "auto":
            raise ConfigError(
                "interaction_cst needs a gate with a block for each pair of features, which is exactly zero where a "
                f"feature may not change another; got gate={parameters.gate!r}. Pass gate='additive' or 'auto'."
            )
        settings = replace(settings, network=replace(network, gate="additive"))
    if find_leaders(constraints, settings.network, len(schema)).any() and not parameters.early_stopping_rounds:
        training = settings.training
        patience = training.patience and max(1, round(training.patience * NUMBERS.leading_patience))
        settings = replace(settings, training=replace(training, patience=patience))
    return settings, constraints


def smoothness_of(parameters: Parameters, schema: Schema) -> Array | None:
    """Return how much rough curves cost, (feature,); None if nothing, or if validation decides."""
    given = parameters.smoothness
    if given is None:
        return None
    if not ENCODERS[parameters.encoder].has_exact_tables:
        raise ConfigError(f"smoothness needs encoder='piecewise'; got {parameters.encoder!r}.")
    return None if given == "auto" else read_smoothness(given, schema)


def score_of(task: Task) -> Score:
    """Return what constraints need to know of the score."""
    return Score(task.scale.spread, _is_log(task), len(task.classes), sign=-1 if task.is_mirrored else 1)


def _is_log(task: Task) -> bool:
    return link_named(task.loss.link).name == "log"
