"""From a trained network to a model: fill in unseen values, measure clamps, centre contributions."""

from dataclasses import dataclass, replace

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding import Cells, Schema
from nae.errors import TrainingError
from nae.links import Link
from nae.network import Network
from nae.network.untrained import fill_table
from nae.tables.gates import GateTables
from nae.tables.model import TableModel
from nae.tables.statistics import slot_weights
from nae.training.clamping import Guards, Positions
from nae.training.ordering import in_order

__all__ = ["Scale", "assemble", "padded_slots", "unpadded"]

_LARGE = 1e30  # contributions may be thousands of times as large, and single precision ends at 3.4e38


@dataclass(frozen=True, eq=False)
class Scale:
    """The scale of every output: the score of the model is ``score * spread + centre`` of the score in training."""

    centre: Array  # (output,)
    spread: Array  # (output,), 0 where there is nothing to learn and the score is the centre
    base: Array | float = 0.0
    """(output,), subtracted from targets and offsets, so that single precision holds their difference."""

    @property
    def unit(self) -> Array:
        """What targets and offsets are divided by for training: the spread, or 1 where it is 0."""
        return np.where(self.spread > 0, self.spread, 1.0)

    @property
    def is_extreme(self) -> bool:
        """Whether tables on the scale of the model need double precision, since single precision ends too early."""
        return bool((self.unit > _LARGE).any() or (self.unit < 1 / _LARGE).any())


def padded_slots(schema: Schema) -> IntArray:
    """Return the position of every slot of the schema in tables padded to the feature with most slots."""
    longest = max(feature.n_slots for feature in schema.features)
    return np.concatenate([i * longest + np.arange(f.n_slots) for i, f in enumerate(schema.features)])


def unpadded(schema: Schema, cells: Cells) -> Cells:
    """Return the cells of training rows, which count padded slots, in the slots of the schema."""
    longest = max(feature.n_slots for feature in schema.features)
    padding = np.arange(len(schema)) * longest - schema.offsets[:-1]
    return Cells(cells.slot - padding, cells.fraction)


def assemble(
    network: Network,
    schema: Schema,
    cells: Cells,
    weights: Array,
    scale: Scale,
    *,
    link: Link,
    outputs: tuple[str, ...],
    classes: tuple[str, ...] = (),
    slot_weight: Array | None = None,
    is_warm: bool = False,
    is_ordered: bool = False,
    has_clamps: bool = False,
) -> TableModel:
    """Return the model of a trained network, without statistics.

    ``cells`` and ``weights`` are those of the training rows. If these are a sample, ``slot_weight`` says how much of
    all rows lies at each slot. If ``is_warm``, other rows have trained the network before. If ``is_ordered``, the
    outputs of every expert ascend. If ``has_clamps``, contributions stay in the range that the rows have shown.
    """
    experts, gate, intercept = network.to_tables(padded_slots(schema))
    weight = slot_weights(cells, weights, schema.n_slots) if slot_weight is None else slot_weight
    experts = fill_table(experts, schema, weight, is_warm=is_warm)
    experts = in_order(experts) if is_ordered else experts
    gate = replace(gate, terms=fill_table(gate.terms, schema, weight, is_warm=is_warm))
    experts = experts * scale.spread[:, None] + 0.0  # -0.0 becomes 0.0
    intercept = intercept.mean(axis=-1) * scale.spread + scale.centre
    if len(classes) > 2:
        experts -= experts.mean(axis=2, keepdims=True)  # exact: the gate is shared by the classes
        intercept = intercept - intercept.mean()
    model = TableModel(
        schema=schema,
        experts=experts,
        gate=gate,
        routing=network.routing,
        intercept=intercept,
        link=link,
        outputs=outputs,
        classes=classes,
    )
    has_classes = len(classes) > 2
    guards = None
    if has_clamps:
        guards = Guards.of(network.forms, len(schema), is_ordered=is_ordered, has_classes=has_classes)
    model = _centre(model, cells, weights, guards)
    is_double = network.dtype == np.float64 or scale.is_extreme
    model = model if is_double else _to_single(model)
    clamps = () if model.clamps is None else model.clamps.to_arrays().values()
    if not all(np.isfinite(array).all() for array in (model.experts, model.intercept, model.gate.terms, *clamps)):
        raise TrainingError(
            "Training diverged: the tables it left are not finite. "
            "Lower learning_rate, or look for extreme values in the target, the weights or the offset."
        )
    return model


def _centre(model: TableModel, cells: Cells, weights: Array, guards: Guards | None) -> TableModel:
    """Shift each feature's experts so that its contributions average zero; the intercept takes the sum.

    With ``guards``, clamps are measured in the same pass. They leave these rows as they are, so the means are the same
    with and without clamps. One expert needs no clamps: its bounds are its curve.
    """
    positions = None if guards is None or model.n_experts == 1 else Positions(model)
    total = np.zeros((model.n_features, model.n_outputs))
    for rows, part, values in model.each(cells, model.contribute):
        total += np.tensordot(weights[rows], values, axes=1)
        if positions is not None:
            positions.add(part, values, weights[rows])
    mean = total / weights.sum()  # (F, O)
    sizes = np.diff(model.schema.offsets)
    shift = np.repeat(mean, sizes, axis=0)  # (T, O)
    return replace(
        model,
        experts=model.experts - shift[:, None, :, None],
        intercept=model.intercept + mean.sum(axis=0),
        clamps=None if positions is None or guards is None else positions.clamps(guards).shifted(-shift),
    )


def _to_single(model: TableModel) -> TableModel:
    with np.errstate(over="ignore"):
        gate = {name: array.astype(np.float32) for name, array in model.gate.arrays.items()}
        return replace(
            model,
            experts=model.experts.astype(np.float32),
            gate=GateTables(model.gate.kind, **gate),
            clamps=None if model.clamps is None else model.clamps.astype(np.float32),
        )
