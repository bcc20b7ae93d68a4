"""Interactions: the joint effect of two or three features, isolated from all other features in the gate.

There are two definitions. ``isolation='mean'`` keeps the bias and the gate terms of the feature itself and of the named
features, and holds all other terms at their training mean. It does not change if a constant moves between a table and
the bias. ``isolation='paper'`` keeps only the terms of the other named features, without the bias and the own term, as
in the paper. Both are exact if the gate is a sum over features. A deep gate is not a sum; its result is averaged over
draws of the other features.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.encoding.cells import Cells
from nae.errors import ConfigError, UserError
from nae.explanation.grid import Axis, make_axis, make_line, row_counts
from nae.explanation.reference import require_statistics
from nae.explanation.serial import Column, Serial, make_frame
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["InteractionExplanation", "Isolation", "explain_interaction"]

Isolation = Literal["mean", "paper"]

_DRAWS = 128  # number of contexts over which a deep gate is averaged


@dataclass(frozen=True, eq=False)
class InteractionExplanation(Serial):
    """The contributions of two or three features as functions of each other, on a grid of their values."""

    type_name: ClassVar[str] = "interaction"

    axes: tuple[Axis, ...]
    outputs: tuple[str, ...]
    classes: tuple[str, ...]
    link: str
    isolation: str
    is_exact: bool  # whether the other features were held constant, and not averaged over draws
    note: str  # a sentence that says how the numbers were computed
    contributions: Array  # (feature, value of the first, of the second[, of the third], output)
    support: Array | None  # (value of the first, of the second[, of the third]), rows nearest each point, if given rows

    def __repr__(self) -> str:
        grid = " × ".join(str(len(axis.labels)) for axis in self.axes)
        return (
            f"InteractionExplanation({' × '.join(self.feature_names)}, {grid} values, "
            f"{counted(len(self.outputs), 'output')}, isolation {self.isolation!r}, "
            f"{'exact' if self.is_exact else 'averaged over contexts'})"
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @property
    def total(self) -> Array:
        """The named features' contributions together, (value, value[, value], output)."""
        return np.asarray(self.contributions.sum(axis=0))

    @property
    def pure(self) -> Array:
        """The total without the effects of fewer of the features; its mean along every axis of training values is 0."""
        out = self.total
        for at, axis in enumerate(self.axes):
            mean = np.tensordot(axis.weight, out, axes=(0, at))
            out = out - np.expand_dims(mean, at)
        return out

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per point of the grid and output."""
        total, pure = self.total, self.pure
        places = np.indices(total.shape).reshape(total.ndim, -1)
        columns: dict[str, Column] = {
            axis.name: [axis.labels[i] for i in place] for axis, place in zip(self.axes, places, strict=False)
        }
        columns["output"] = [self.outputs[i] for i in places[-1]]
        for axis, part in zip(self.axes, self.contributions, strict=True):
            columns[f"contribution of {axis.name}"] = part.ravel()
        return make_frame({**columns, "total": total.ravel(), "pure": pure.ravel()}, backend)


def explain_interaction(
    model: TableModel,
    names: tuple[str, ...],
    *,
    isolation: Isolation = "mean",
    resolution: int = 48,
    cells: Cells | None = None,
) -> InteractionExplanation:
    """Return the joint effect of two or three features; ``cells`` are rows that show where the data lies."""
    if len(names) not in (2, 3) or len(set(names)) < len(names):
        raise UserError(f"An interaction takes two or three different features; got {list(names)}.")
    if isolation not in ("mean", "paper"):
        raise ConfigError(f"isolation must be 'mean' or 'paper'; got {isolation!r}.")
    if resolution < 2:
        raise ConfigError(f"resolution must be at least 2; got {resolution}.")
    require_statistics(model)
    chosen = tuple(model.schema.index(name) for name in names)
    lines = tuple(make_line(model, i, resolution=resolution, is_panel=at == 2) for at, i in enumerate(chosen))
    isolated = _Isolated(model, chosen, lines, isolation)
    return InteractionExplanation(
        axes=tuple(make_axis(model, i, line) for i, line in zip(chosen, lines, strict=True)),
        outputs=model.outputs,
        classes=model.classes,
        link=model.link.name,
        isolation=isolation,
        is_exact=model.gate.is_additive,
        note=_note(model, isolation, has_rows=cells is not None),
        contributions=isolated.contributions(cells),
        support=None if cells is None else row_counts(chosen, lines, cells),
    )


@dataclass(frozen=True, eq=False)
class _Isolated:
    """The gate over the grid of values of the named features, with all other features held."""

    model: TableModel
    chosen: tuple[int, ...]
    lines: tuple[Cells, ...]
    isolation: Isolation

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(line) for line in self.lines)

    def contributions(self, cells: Cells | None) -> Array:
        """Return the contributions of the named features, (feature, value, value[, value], output)."""
        is_averaged = not self.model.gate.is_additive and self.isolation == "mean"
        others = self._draw_others(cells) if is_averaged else self._held_others()[None]
        out = np.zeros((len(self.chosen), *self.shape, self.model.n_outputs))
        for at in range(len(self.chosen)):
            experts = self._along(interpolate(self.model.experts, self.lines[at])[:, 0], at)  # (..., K, O, M)
            for held in others:
                logits = np.broadcast_to(
                    self._logits(at, held), (*self.shape, self.model.n_experts, self.model.n_members)
                )
                rows = logits.reshape(-1, self.model.n_experts, 1, self.model.n_members)
                weights = self.model.routing.weights(rows).reshape(*logits.shape[:-1], 1, self.model.n_members)
                out[at] += self._clipped((weights * experts).sum(axis=-3).mean(axis=-1), at)
        return out / len(others)

    def _clipped(self, values: Array, at: int) -> Array:
        """Return the contributions of one feature over the grid, (value, value[, value], output), within the clamps.

        Those of the isolation 'paper' are not the model's contributions, so no clamp holds for them.
        """
        if self.model.clamps is None or self.isolation == "paper":
            return values
        lower, upper = (self._along(end[:, 0], at) for end in self.model.clamps.at(self.lines[at]))
        return np.asarray(np.minimum(np.maximum(values, lower), upper))

    def _logits(self, at: int, held: Array) -> Array:
        """Return the logits of one feature over the grid, (value, value[, value], expert, member)."""
        model, gate, i = self.model, self.model.gate, self.chosen[at]
        is_paper = self.isolation == "paper"
        own = slice(i, None, model.n_features)  # logits are ordered (expert, feature)
        if not gate.sums_features:
            term = self._along(interpolate(gate.terms, self.lines[at])[:, 0], at)
            return np.zeros_like(term) if is_paper else term + gate.bias[own]
        hidden = np.zeros((*(1,) * len(self.lines), *gate.terms.shape[1:]), dtype=gate.terms.dtype)
        for axis, line in enumerate(self.lines):
            if not (is_paper and axis == at):
                hidden = hidden + self._along(interpolate(gate.terms, line)[:, 0], axis)
        hidden = hidden if is_paper else hidden + held
        if gate.mix is None or gate.mix_bias is None:
            return np.asarray(hidden[..., own, :])
        active = hidden if gate.is_additive else np.maximum(hidden, 0.0)
        flat = active.reshape(-1, *active.shape[-2:]).transpose(2, 0, 1)  # (M, point, H)
        mixed = np.matmul(flat, gate.mix[:, :, own]).transpose(1, 2, 0)
        logits = mixed.reshape(*active.shape[:-2], model.n_experts, model.n_members)
        return np.asarray(logits if is_paper else logits + gate.mix_bias[own])

    def _along(self, values: Array, axis: int) -> Array:
        """Return (value, ...) along one axis of the grid."""
        ones = [len(values) if other == axis else 1 for other in range(len(self.lines))]
        return values.reshape(*ones, *values.shape[1:])

    def _held_others(self) -> Array:
        """Return bias plus the mean gate terms of the features not named, (width, member)."""
        means = require_statistics(self.model).gate_mean
        others = [j for j in range(self.model.n_features) if j not in self.chosen]
        if not self.model.gate.sums_features:
            return self.model.gate.bias
        return np.asarray(means[others].sum(axis=0) + self.model.gate.bias, dtype=self.model.gate.terms.dtype)

    def _draw_others(self, cells: Cells | None) -> Array:
        """Return bias plus gate terms of the features not named, (draw, width, member).

        The draws are given rows, or each feature is drawn independently by its training frequencies.
        """
        model, weight = self.model, require_statistics(self.model).weight
        out = np.repeat(model.gate.bias[None], _DRAWS, axis=0).astype(model.gate.terms.dtype)
        random = np.random.default_rng(0)  # a fixed seed, so that every call uses the same contexts
        rows = None
        if cells is not None and len(cells):
            rows = cells.take(np.linspace(0, len(cells) - 1, _DRAWS).round().astype(np.int64))
        for j in range(model.n_features):
            if j in self.chosen:
                continue
            if rows is not None:
                out += interpolate(model.gate.terms, Cells(rows.slot[:, [j]], rows.fraction[:, [j]]))[:, 0]
            else:
                own = weight[model.schema.slots(j)]
                drawn = random.choice(len(own), size=_DRAWS, p=own / own.sum())
                out += model.gate.terms[drawn + int(model.schema.offsets[j])]
        return out


def _note(model: TableModel, isolation: str, *, has_rows: bool) -> str:
    if isolation == "paper":
        exact = (
            ""
            if model.gate.is_additive
            else " A deep gate is not a sum over features, so this is only one slice of it."
        )
        return f"The gate has only the terms of the named features, without its bias and the own term.{exact}"
    if not model.gate.is_additive:
        whence = "the given rows" if has_rows else "their training frequencies, independently"
        return f"Not exact (deep gate): averaged over {_DRAWS} contexts of the other features, drawn from {whence}."
    return "Exact, with all other features' gate terms held at their training mean."
