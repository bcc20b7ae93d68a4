"""The optional kernel of a model: its tables laid out for the compiled functions of :mod:`nae.tables.jit`."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nae._optional import require
from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns, numbers
from nae.encoding.schema import Number, Schema

if TYPE_CHECKING:
    from nae.tables.model import TableModel

__all__ = ["Kernel", "Located", "make_kernel"]

_KINDS = {"additive": 0, "diagonal": 1, "low-rank": 2, "deep": 3}
_PER_THREAD = 256  # rows from which another thread pays


@dataclass(frozen=True, eq=False)
class Located:
    """What the kernel found: scores (row, output), and on request contributions and bounds (row, feature, output)."""

    score: Array
    values: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class Kernel:
    """Tables of a model as the compiled functions want them; see :func:`make_kernel`."""

    tables: tuple[Array, Array, Array, Array, Array]  # experts (group, T + 1, .), terms (T + 1, .), bias, mix, mix bias
    shape: tuple[int, int, int, int]  # groups of members, members of a group, experts, outputs
    rule: tuple[int, int, bool]  # gate, n_active, whether weights are equal
    intercept: Array
    exp: Any
    run: Callable[..., None]
    find: Callable[..., None]

    def evaluate(self, cells: Cells, *, with_values: bool = False) -> Located:
        """Return the scores of all rows; with contributions and bounds where asked for."""
        n_rows, n_features = cells.slot.shape
        n_outputs = len(self.intercept)
        score = np.empty((n_rows, n_outputs))
        score[:] = self.intercept
        shape = (n_rows if with_values else 0, n_features, n_outputs)
        found = Located(score, np.zeros(shape), np.zeros(shape), np.zeros(shape))
        dtype = self.tables[0].dtype

        def run(rows: slice) -> None:
            slot = np.ascontiguousarray(cells.slot[rows].T, dtype=np.int32)
            fraction = np.ascontiguousarray(cells.fraction[rows].T, dtype=dtype)
            own = (found.score[rows], found.values[rows], found.lower[rows], found.upper[rows])
            self.run((slot, fraction), self.tables, self.shape, self.rule, self.exp, own)

        _share_out(run, n_rows)
        return found

    def locate(self, schema: Schema, columns: Columns) -> Cells:
        """Return the cells of a table; the same as ``schema.locate``."""
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


def make_kernel(model: "TableModel") -> Kernel:
    """Return the kernel of a model, compiled; needs numba."""
    require("numba", extra="fast")
    from nae.tables import jit

    gate, n_slots = model.gate, model.schema.n_slots
    dtype = model.experts.dtype
    experts = model.experts.transpose(3, 0, 1, 2).reshape(model.n_members, n_slots, -1)
    mix, mix_bias = np.zeros((1, 0, 0), dtype), np.zeros((1, 0), dtype)
    if gate.mix is not None and gate.mix_bias is not None and model.n_experts > 1:
        pad = -gate.terms.shape[1] % 4  # the kernel takes four hidden numbers at a time
        terms = np.pad(gate.terms.transpose(0, 2, 1), ((0, 0), (0, 0), (0, pad)))
        bias = np.pad(gate.bias.T, ((0, 0), (0, pad)))
        mix = np.pad(gate.mix, ((0, 0), (0, pad), (0, 0)))
        mix_bias = _own(gate.mix_bias.T)
    else:
        experts = experts.transpose(1, 0, 2).reshape(1, n_slots, -1)
        terms, bias = gate.terms, gate.bias
    if model.n_experts == 1:  # one weight of 1 per feature and member, whatever the gate
        bias = np.zeros(model.n_features * model.n_members, dtype)
    # A slot beyond the last one: what follows a slot is read even where it has no share.
    tables = (
        _own(np.pad(experts, ((0, 0), (0, 1), (0, 0)))),
        _own(np.pad(terms.reshape(n_slots, -1), ((0, 1), (0, 0)))),
        _own(bias).reshape(-1),
        mix,
        mix_bias,
    )
    return Kernel(
        tables=tables,
        shape=(len(experts), model.n_members // len(experts), model.n_experts, model.n_outputs),
        rule=(_KINDS[gate.kind] if model.n_experts > 1 else 0, model.routing.n_active, model.routing.name == "equal"),
        intercept=model.intercept.astype(np.float64),
        exp=jit.exp_single if dtype == np.float32 else jit.exp_double,
        run=jit.evaluate,
        find=jit.locate_numbers,
    )


def _own(array: Array) -> Array:
    return np.array(array, order="C")  # a copy: arrays that may not be written would be compiled for once more


def _share_out(run: Callable[[slice], None], n_rows: int) -> None:
    """Run over all rows: on this thread, or many rows on one thread per core (the compiled functions hold no lock)."""
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
