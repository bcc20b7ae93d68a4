"""Two models over one set of slots: every knot and level of either, so that both are linear between neighbouring slots.

A table is read off at the slots of both models. Between two of them it is linear in both, and beyond the last one both
are constant, so nothing is lost: for every input, each model answers as it did before.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.schema import Category, Feature, Number, Schema
from nae.errors import DataError, listed
from nae.tables.clamps import Clamps
from nae.tables.gates import GateTables
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["alike", "merge"]


def merge(first: TableModel, second: TableModel) -> tuple[TableModel, TableModel]:
    """Return both models over one schema, with the features and outputs of the first.

    All tables are in double precision, but for gate terms that are read off at slots alone. Models that answer
    different questions are an error: other features, other kinds, another link, other classes.
    """
    second = alike(first, second)
    order = [second.schema.index(name) for name in first.feature_names]
    pairs = [(one, second.schema.features[at]) for one, at in zip(first.schema.features, order, strict=True)]
    found = [_merged(*pair) for pair in pairs]
    schema = Schema(tuple(feature for feature, _ in found), has_names=first.schema.has_names)
    columns = [column for _, column in found]
    return (
        _read_off(first, columns, list(range(first.n_features)), schema),
        _read_off(second, columns, order, schema),
    )


def alike(first: TableModel, second: TableModel) -> TableModel:
    """Return the second model with the outputs of the first, in its order. Its features may have another order."""
    _check_features(first, second)
    return _with_outputs(first, second)


def _check_features(first: TableModel, second: TableModel) -> None:
    ours, theirs = set(first.feature_names), set(second.feature_names)
    if ours != theirs:
        alone = [(sorted(ours - theirs), "first"), (sorted(theirs - ours), "second")]
        found = " and ".join(f"the {which} alone has {listed(names)}" for names, which in alone if names)
        raise DataError(f"Models can be compared only if they have the same features; {found}.")
    for feature in first.schema.features:
        other = second.schema.features[second.schema.index(feature.name)]
        if isinstance(feature, Category) != isinstance(other, Category) and not (
            _is_empty(feature) or _is_empty(other)
        ):
            raise DataError(
                "Models can be compared only if a feature has one kind in both; "
                f"{feature.name!r} is a {feature.kind} in the first and a {other.kind} in the second."
            )
    if first.link.name != second.link.name:
        raise DataError(
            "Models can be compared only if their scores have one link; "
            f"the first has {first.link.name!r}, the second {second.link.name!r}."
        )


def _with_outputs(first: TableModel, second: TableModel) -> TableModel:
    if set(first.classes) != set(second.classes):
        raise DataError(
            "Models can be compared only if all predict the same classes, or all predict numbers; "
            f"the first has {listed(first.classes) or 'none'}, the second {listed(second.classes) or 'none'}."
        )
    if len(first.classes) == 2:  # each model may speak for either of the two classes
        return second.for_class(first.classes[1])
    if first.outputs == second.outputs or first.n_outputs == second.n_outputs == 1:
        return second
    if sorted(first.outputs) != sorted(second.outputs):
        raise DataError(
            "Models can be compared only if they have the same outputs; "
            f"the first has {listed(first.outputs)}, the second {listed(second.outputs)}."
        )
    order, clamps = [second.outputs.index(name) for name in first.outputs], second.clamps
    return replace(
        second,
        experts=second.experts[:, :, order],
        intercept=second.intercept[order],
        clamps=None if clamps is None else Clamps(clamps.lower[:, order], clamps.upper[:, order]),
        outputs=first.outputs,
        classes=first.classes,
        class_weight=tuple(second.class_weight[at] for at in order) if second.class_weight else (),
        kernel=None,
    )


def _is_empty(feature: Feature) -> bool:
    return isinstance(feature, Number) and feature.is_empty


def _merged(one: Feature, other: Feature) -> tuple[Feature, AnyArray]:
    """Return the feature with the slots of both, and a column with a value on each of them, but not unseen."""
    levels = [feature for feature in (one, other) if isinstance(feature, Category)]
    if levels:
        every = dict.fromkeys(key for feature in levels for key in (*feature.levels, *feature.rare))
        keys = _keys(one, other, every)
        return Category(one.name, keys), np.array([*keys, None], dtype=object)
    numbers = [feature for feature in (one, other) if isinstance(feature, Number) and not feature.is_empty]
    knots = np.unique(np.concatenate([feature.knots for feature in numbers])) if numbers else np.zeros(1)
    is_boolean = bool(numbers) and all(feature.is_boolean for feature in numbers)
    return Number(one.name, knots, is_boolean=is_boolean, has_missing=not numbers), np.append(knots, np.nan)


def _keys(one: Feature, other: Feature, levels: Iterable[str]) -> tuple[str, ...]:
    """Return one level for every pair of slots. Levels that are rare in both, or unseen in both, are alike."""
    column = np.array(list(levels), dtype=object)
    pairs = np.stack([feature.locate(column)[0] for feature in (one, other)], axis=1)
    is_known = (pairs != [one.n_values + 1, other.n_values + 1]).any(axis=1)
    _, kept = np.unique(pairs[is_known], axis=0, return_index=True)
    return tuple(column[is_known][np.sort(kept)].tolist())


def _read_off(model: TableModel, columns: list[AnyArray], order: list[int], schema: Schema) -> TableModel:
    """Return the model with its features in an order, read off at the values of columns, and at unseen ones."""
    slots: list[AnyArray] = []
    fractions: list[AnyArray] = []
    for i, column in zip(order, columns, strict=True):
        slot, fraction = model.schema.features[i].locate(column)
        own = model.schema.slots(i)
        slots += [slot + own.start, np.array([own.stop - 1])]
        fractions += [fraction, np.zeros(1)]
    slot, fraction = np.concatenate(slots), np.concatenate(fractions)
    is_whole = fraction >= 1  # the fraction was rounded up to the next knot
    cells = Cells((slot + is_whole)[:, None], np.where(is_whole, 0.0, fraction)[:, None])
    return replace(
        model,
        schema=schema,
        experts=_at(model.experts, cells),
        gate=_read_gate(model, cells, np.array(order)),
        statistics=None,
        clamps=None if model.clamps is None else Clamps(_at(model.clamps.lower, cells), _at(model.clamps.upper, cells)),
        kernel=None,
    )


def _at(table: Array, cells: Cells) -> Array:
    """Return a table at cells of one feature each, in double precision; between slots, numbers are not rounded."""
    return interpolate(table.astype(np.float64), cells)[:, 0]


def _terms_at(terms: Array, cells: Cells) -> Array:
    """Return gate terms at cells. On slots alone they keep their type: they are the largest array by far."""
    return _at(terms, cells) if cells.fraction.any() else terms[cells.slot[:, 0]]


def _read_gate(model: TableModel, cells: Cells, order: IntArray) -> GateTables:
    """Return the gate at other slots, with the logits of the features in an order."""
    gate = model.gate
    logits = (np.arange(model.n_experts)[:, None] * model.n_features + order).ravel()  # ordered (expert, feature)
    terms, bias = _terms_at(gate.terms, cells), gate.bias.astype(np.float64)
    if gate.mix is not None and gate.mix_bias is not None:
        mix, mix_bias = gate.mix.astype(np.float64), gate.mix_bias.astype(np.float64)
        return GateTables(gate.kind, terms, bias, mix[:, :, logits], mix_bias[logits])
    if gate.sums_features and (np.diff(order) != 1).any():
        terms = terms[:, logits]
    return GateTables(gate.kind, terms, bias[logits])
