"""The optional kernel of a model: its tables, laid out for the compiled functions of :mod:`nae.tables.jit`."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from nae._optional import require
from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns, numbers
from nae.encoding.schema import Number, Schema
from nae.tables.lowered import Clip, Lowered, Mix, OneExpert, Step
from nae.tables.routing import EqualRouting, SoftmaxRouting
from nae.tables.steps import Multiply, OwnTerms, Rectify, SumTerms

__all__ = ["LAYOUTS", "Evaluated", "Kernel", "Rule", "make_kernel"]

Tables: TypeAlias = tuple[Array, Array, Array, Array, Array, Array]

_PER_THREAD = 256  # rows that make another thread worthwhile


class Rule(NamedTuple):
    """Which steps the compiled functions take."""

    has_sums: bool = False
    has_own_terms: bool = False
    rectifies: bool = False
    multiplies: bool = False
    n_active: int = 1
    is_equal: bool = False
    n_extreme: int = 1


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The result of the kernel: scores (row, output); on request contributions and bounds (row, feature, output)."""

    score: Array
    values: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class Kernel:
    """The tables of a model in the layout of the compiled functions; see :func:`make_kernel`."""

    tables: Tables  # experts (group, T + 1, .), terms (T + 1, .), bias, mix, mix bias, clamps (T + 1, .)
    shape: tuple[int, int, int, int]  # groups of members, members of a group, experts, outputs
    rule: Rule
    intercept: Array
    exp: Any
    run: Callable[..., None]
    find: Callable[..., None]

    def evaluate(self, cells: Cells, *, with_values: bool = False) -> Evaluated:
        """Return the scores of all rows, with contributions and bounds if ``with_values`` is true."""
        n_rows, n_features = cells.slot.shape
        n_outputs = len(self.intercept)
        score = np.empty((n_rows, n_outputs))
        score[:] = self.intercept
        shape = (n_rows if with_values else 0, n_features, n_outputs)
        found = Evaluated(score, np.zeros(shape), np.zeros(shape), np.zeros(shape))
        dtype = self.tables[0].dtype

        def run(rows: slice) -> None:
            slot = np.ascontiguousarray(cells.slot[rows].T, dtype=np.int32)
            fraction = np.ascontiguousarray(cells.fraction[rows].T, dtype=dtype)
            own = (found.score[rows], found.values[rows], found.lower[rows], found.upper[rows])
            self.run((slot, fraction), self.tables, self.shape, self.rule, self.exp, own)

        _share_out(run, n_rows)
        return found

    def locate(self, schema: Schema, columns: Columns) -> Cells:
        """Return the cells of a table, the same ones as ``schema.locate``."""
        n_rows = columns.n_rows
        slot = np.empty((len(schema), n_rows), dtype=np.int32)
        fraction = np.zeros((len(schema), n_rows), dtype=self.tables[0].dtype)
        chosen: list[int] = []
        for i, (feature, column) in enumerate(zip(schema.features, columns.arrays, strict=True)):
            if isinstance(feature, Number):
                chosen.append(i)
            else:
                slot[i] = feature.locate(column)[0] + schema.offsets[i]
        if chosen:
            found = [numbers(columns.arrays[i], schema.features[i].name) for i in chosen]
            sizes = [schema.features[i].n_values for i in chosen]
            firsts: IntArray = np.concatenate([[0], np.cumsum(sizes)])
            knots, offsets = schema.knots, schema.offsets[chosen]

            def run(rows: slice) -> None:
                values = np.stack([column[rows] for column in found])
                own = (np.empty(values.shape, slot.dtype), np.empty(values.shape, fraction.dtype))
                self.find(values, knots, firsts, offsets, *own)
                slot[chosen, rows], fraction[chosen, rows] = own

            _share_out(run, n_rows)
        return Cells(slot.T, fraction.T)


def make_kernel(model: Lowered) -> Kernel:
    """Return the kernel of a model, compiled. It needs numba."""
    require("numba", extra="fast")
    from nae.tables import jit

    layout = _Layout.empty(model)
    for step in model.steps:
        layout = LAYOUTS[type(step)](layout, step)
    n_groups = len(layout.experts)
    return Kernel(
        tables=layout.tables,
        shape=(n_groups, model.n_members // n_groups, model.n_experts, model.n_outputs),
        rule=layout.rule,
        intercept=model.intercept.astype(np.float64),
        exp=jit.exp_single if model.dtype == np.float32 else jit.exp_double,
        run=jit.evaluate,
        find=jit.locate_numbers,
    )


@dataclass(frozen=True, eq=False)
class _Layout:
    """What the compiled functions read, as far as the steps up to now have filled it in."""

    experts: Array  # (group, slot, .)
    terms: Array  # (slot, ...)
    bias: Array
    mix: Array  # (member, ., logit)
    mix_bias: Array  # (member, logit)
    clamps: Array  # (slot, ends of every output); no slots where there are none
    rule: Rule

    @classmethod
    def empty(cls, model: Lowered) -> Self:
        n_slots, n_lanes = model.schema.n_slots, model.n_features * model.n_members
        shapes: tuple[tuple[int, ...], ...] = ((1, 0, 0), (n_slots, 0), (n_lanes,), (1, 0, 0), (1, 0), (0, 0))
        experts, terms, bias, mix, mix_bias, clamps = (np.zeros(shape, model.dtype) for shape in shapes)
        return cls(experts, terms, bias, mix, mix_bias, clamps, Rule())

    @property
    def tables(self) -> Tables:
        # A slot beyond the last one: what follows a slot is read even where it has no share.
        experts = _own(np.pad(self.experts, ((0, 0), (0, 1), (0, 0))))
        terms = _own(np.pad(self.terms.reshape(len(self.terms), -1), ((0, 1), (0, 0))))
        clamps = _own(np.pad(self.clamps, ((0, min(len(self.clamps), 1)), (0, 0))))
        return experts, terms, _own(self.bias).reshape(-1), self.mix, self.mix_bias, clamps

    def having(self, rule: Rule, **tables: Array) -> Self:
        """Return the layout with another rule, and more tables."""
        return replace(self, rule=rule, **tables)


def _lay_out_product(layout: _Layout, step: Multiply) -> _Layout:
    """Lay the terms out by member, and pad them: the kernel takes four hidden numbers at a time."""
    pad = -len(layout.bias) % 4
    return layout.having(
        layout.rule._replace(multiplies=True),
        terms=np.pad(layout.terms.transpose(0, 2, 1), ((0, 0), (0, 0), (0, pad))),
        bias=np.pad(layout.bias.T, ((0, 0), (0, pad))),
        mix=np.pad(step.matrix, ((0, 0), (0, pad), (0, 0))),
        mix_bias=_own(step.bias.T),
    )


def _lay_out_experts(layout: _Layout, step: Mix) -> _Layout:
    """Lay the experts out by group: a member with a matrix of its own is a group of its own."""
    n_slots, n_members = len(step.experts), step.experts.shape[3]
    experts = step.experts.transpose(3, 0, 1, 2).reshape(n_members, n_slots, -1)
    if not layout.rule.multiplies:
        experts = experts.transpose(1, 0, 2).reshape(1, n_slots, -1)
    return layout.having(layout.rule._replace(n_extreme=step.n_extreme), experts=experts)


def _lay_out_clamps(layout: _Layout, step: Clip) -> _Layout:
    return layout.having(layout.rule, clamps=np.concatenate([step.lower, step.upper], axis=1))


LAYOUTS: dict[type[Step], Callable[[_Layout, Any], _Layout]] = {
    SumTerms: lambda layout, step: layout.having(layout.rule._replace(has_sums=True), terms=step.terms, bias=step.bias),
    OwnTerms: lambda layout, step: layout.having(
        layout.rule._replace(has_own_terms=True), terms=step.terms, bias=step.bias
    ),
    Rectify: lambda layout, step: layout.having(layout.rule._replace(rectifies=True)),
    Multiply: _lay_out_product,
    SoftmaxRouting: lambda layout, step: layout.having(layout.rule._replace(n_active=step.n_active)),
    EqualRouting: lambda layout, step: layout.having(layout.rule._replace(n_active=step.n_active, is_equal=True)),
    OneExpert: lambda layout, step: layout,  # its logit is 0, so its weight is 1
    Mix: _lay_out_experts,
    Clip: _lay_out_clamps,
}
"""How every step gets into the layout."""


def _own(array: Array) -> Array:
    return np.array(array, order="C")  # a copy, because numba would compile once more for read-only arrays


def _share_out(run: Callable[[slice], None], n_rows: int) -> None:
    """Run over all rows: few rows on this thread, many rows on one thread per core."""
    n_threads = min(_cores(), n_rows // _PER_THREAD)
    if n_threads < 2:
        run(slice(0, n_rows))
        return
    step = -(-n_rows // (2 * n_threads)) if n_rows > 16 * _PER_THREAD else -(-n_rows // n_threads)
    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(run, slice(start, start + step)) for start in range(0, n_rows, step)]:
            done.result()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
