"""The core with arrays: what a network is built on goes in once, weights and rows whenever they change."""

import enum
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_double, c_int32, c_uint8, pointer
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, BoolArray, IntArray
from nae.native.library import INSTRUCTIONS, CConfig, CForms, CInputs, CRows, library

__all__ = ["BLOCKS", "GATES", "LOSSES", "ROUTINGS", "Core", "Forms", "Inputs", "Shape", "Table", "Tensor", "Values"]

GATES = ("additive", "low-rank", "deep", "diagonal")
ROUTINGS = ("softmax", "equal", "gumbel")
LOSSES = ("squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie", "logistic", "cross-entropy")
BLOCKS = 7  # the number of the first block's first tensor; each block has four


class Values(enum.IntEnum):
    """Numbers that every parameter has."""

    WEIGHTS = 0
    FIRST_MOMENTS = 1
    SECOND_MOMENTS = 2
    MEANS = 3
    GRADIENTS = 4


class Tensor(enum.IntEnum):
    """Tensors outside the blocks; their shapes are in cpp/abi.h."""

    EXPERT_WEIGHT = 0
    EXPERT_BIAS = 1
    INTERCEPT = 2
    GATE_WEIGHT = 3
    GATE_BIAS = 4
    MIX = 5
    MIX_BIAS = 6


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes of a network, and how it is trained; fields as in cpp/abi.h."""

    is_double: bool
    n_members: int
    n_outputs: int
    n_experts: int
    n_active: int
    hidden: int
    n_blocks: int
    gate: str
    n_terms: int
    routing: str
    temperature: float
    loss: str
    batch_size: int
    n_threads: int
    averaged_steps: int
    n_kept: int
    weight_decay: float
    variation: float
    output: float
    context: float
    dial_target: float | None
    dial_log_least: float
    instructions: str = "best"

    @property
    def dtype(self) -> type[np.floating]:
        """The precision of training."""
        return np.float64 if self.is_double else np.float32


@dataclass(frozen=True, eq=False, kw_only=True)
class Forms:
    """What experts and gate terms are made to be; fields as in cpp/abi.h."""

    n_ordered: IntArray  # (F,)
    rises: IntArray
    bends: IntArray
    is_single: BoolArray
    is_sorted: BoolArray
    leads: BoolArray
    places: Array  # (slot,)
    caps: Array  # (F, O)
    allows: BoolArray | None  # (M, F, F)
    sharpness: float
    sorts_outputs: bool
    n_leading: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Inputs:
    """What a network is built on, slot by slot; slots of a feature stand together, without padding."""

    n_slots: IntArray  # (F,)
    values: Array  # (slot, input)
    slot_weight: Array  # (slot,), of the training rows
    variation_slots: float  # how many slots the variation penalty is a mean over
    is_live: BoolArray  # (F,)
    start: Array | None  # (slot, O, M)
    start_offset: Array | None  # (O, M)
    own_fold: IntArray  # (M,)
    forms: Forms | None
    left: Array | None  # (slot,), of a penalty on rough curves
    roughness: Array | None  # (slot,), its weights
    loss_option: Array  # (O,), quantile, power or delta of every output


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as the core reads them: contiguous arrays of its types."""

    slot: AnyArray  # (N, F), 32-bit numbers of slots; each feature has one more than in Inputs, for untrained values
    fraction: AnyArray  # (N, F)
    target: AnyArray | None  # (N, O)
    label: AnyArray | None  # (N,), 32 bits
    weight: AnyArray  # (N,)
    base: AnyArray | None  # (N, O)
    fold: AnyArray | None  # (N,), 32 bits

    def __len__(self) -> int:
        return len(self.weight)

    def with_weight(self, weight: AnyArray) -> "Table":
        """Return the same rows with other weights."""
        return replace(self, weight=weight)

    def pointers(self) -> CRows:
        """Return the addresses of the arrays, which live as long as this object."""
        names = ("slot", "fraction", "target", "label", "weight", "base", "fold")
        arrays = (getattr(self, name) for name in names)
        return CRows(*(None if array is None else array.ctypes.data for array in arrays))


class Core:
    """A network in training: its weights, what the optimiser knows of them, and their running mean."""

    def __init__(self, shape: Shape, inputs: Inputs) -> None:
        self._library = library()
        self._handle: int | None = None
        self.shape = shape
        config, given, keep = _config(shape, inputs), *_inputs(inputs)
        self._handle = self._library.nae_new(byref(config), byref(given))
        del keep
        if not self._handle:
            wanted = "" if shape.instructions == "best" else f", or {shape.instructions} instructions"
            raise MemoryError(f"The native core needs more memory{wanted}.")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.nae_delete(self._handle)
            self._handle = None

    def set(self, values: Values, tensor: int, array: AnyArray) -> None:
        """Copy numbers of a tensor in."""
        given = np.ascontiguousarray(array, dtype=self.shape.dtype)
        self._library.nae_set(self._handle, values, tensor, given.ctypes.data)

    def get(self, values: Values, tensor: int, into: AnyArray) -> None:
        """Copy numbers of a tensor out, into a contiguous array; those that nothing trains stay as they are."""
        self._library.nae_get(self._handle, values, tensor, into.ctypes.data)

    def restart_mean(self) -> None:
        """Let the running mean begin at the weights as they are."""
        self._library.nae_restart_mean(self._handle)

    @property
    def dial(self) -> tuple[float, float]:
        """The logarithm of the penalty's weight, and the running additivity."""
        log_gamma, running = c_double(), c_double()
        self._library.nae_get_dial(self._handle, byref(log_gamma), byref(running))
        return log_gamma.value, running.value

    @dial.setter
    def dial(self, state: tuple[float, float]) -> None:
        self._library.nae_set_dial(self._handle, *state)

    @property
    def noise_per_step(self) -> int:
        """How far a step moves the counter of random numbers on."""
        return int(self._library.nae_noise_per_step(self._handle))

    def train(self, table: Table, order: IntArray, *, first_step: int, rates: Sequence[float], noise: int) -> Array:
        """Take a step for every row of ``order`` (step, B) and return the losses before them, (step, M)."""
        given, steps = np.ascontiguousarray(order, dtype=np.int64), np.asarray(rates, dtype=np.float64)
        losses = np.zeros((len(given), self.shape.n_members))
        self._check(
            self._library.nae_train(
                self._handle,
                byref(table.pointers()),
                given.ctypes.data,
                len(given),
                first_step,
                steps.ctypes.data,
                noise,
                losses.ctypes.data,
            )
        )
        return losses

    def gradients(self, table: Table, order: IntArray, *, noise: int = 0) -> Array:
        """Find the gradients of one step, which ``get`` returns, and return the losses, (M,)."""
        given, losses = np.ascontiguousarray(order, dtype=np.int64), np.zeros(self.shape.n_members)
        rows = byref(table.pointers())
        self._check(self._library.nae_gradients(self._handle, rows, given.ctypes.data, noise, losses.ctypes.data))
        return losses

    def score(self, table: Table, rows_of_member: Sequence[IntArray], *, is_filled: bool) -> list[AnyArray]:
        """Return every member's scores of its own rows, (N, O) each, by the weights that are kept; without bases."""
        order = np.ascontiguousarray(np.concatenate(rows_of_member), dtype=np.int64)
        starts = np.cumsum([0, *(len(rows) for rows in rows_of_member)]).astype(np.int64)
        scores = np.zeros((len(order), self.shape.n_outputs), dtype=self.shape.dtype)
        self._check(
            self._library.nae_score(
                self._handle,
                byref(table.pointers()),
                order.ctypes.data,
                starts.ctypes.data,
                is_filled,
                scores.ctypes.data,
            )
        )
        return np.split(scores, starts[1:-1])

    def losses(self, table: Table, rows: IntArray, scores: AnyArray) -> AnyArray:
        """Return the loss of every row from its scores."""
        order, given = (np.ascontiguousarray(a, dtype=t) for a, t in ((rows, np.int64), (scores, self.shape.dtype)))
        losses = np.zeros(len(order), dtype=self.shape.dtype)
        self._check(
            self._library.nae_losses(
                self._handle,
                byref(table.pointers()),
                order.ctypes.data,
                len(order),
                given.ctypes.data,
                losses.ctypes.data,
            )
        )
        return losses

    def additivity(self, table: Table, rows: IntArray, *, is_filled: bool) -> float:
        """Return the additivity of the members' mean on some rows, by the weights that are kept."""
        order, found = np.ascontiguousarray(rows, dtype=np.int64), c_double()
        self._check(
            self._library.nae_additivity(
                self._handle, byref(table.pointers()), order.ctypes.data, len(order), is_filled, byref(found)
            )
        )
        return found.value

    def _check(self, status: int) -> None:
        if status:
            raise MemoryError("The native core ran out of memory.")


def _config(shape: Shape, inputs: Inputs) -> CConfig:
    return CConfig(
        is_double=shape.is_double,
        instructions=INSTRUCTIONS.index(shape.instructions),
        n_members=shape.n_members,
        n_features=len(inputs.n_slots),
        n_outputs=shape.n_outputs,
        n_experts=shape.n_experts,
        n_active=shape.n_active,
        hidden=shape.hidden,
        n_blocks=shape.n_blocks,
        n_inputs=inputs.values.shape[1],
        gate=GATES.index(shape.gate),
        n_terms=shape.n_terms,
        routing=ROUTINGS.index(shape.routing),
        loss=LOSSES.index(shape.loss),
        batch_size=shape.batch_size,
        n_threads=shape.n_threads,
        averaged_steps=shape.averaged_steps,
        n_kept=shape.n_kept,
        has_dial=shape.dial_target is not None,
        temperature=shape.temperature,
        weight_decay=shape.weight_decay,
        variation=shape.variation,
        output=shape.output,
        context=shape.context,
        dial_target=shape.dial_target or 0.0,
        dial_log_least=shape.dial_log_least,
    )


def _inputs(inputs: Inputs) -> tuple[CInputs, list[AnyArray]]:
    """Return the addresses of the arrays, and the arrays, which must live while these are used."""
    keep: list[AnyArray] = []

    def address(array: AnyArray | None, dtype: type, kind: Any) -> Any:
        if array is None:
            return None
        keep.append(np.ascontiguousarray(array, dtype=dtype))
        return keep[-1].ctypes.data_as(POINTER(kind))

    given = CInputs(
        n_slots=address(inputs.n_slots, np.int32, c_int32),
        values=address(inputs.values, np.float64, c_double),
        slot_weight=address(inputs.slot_weight, np.float64, c_double),
        variation_slots=inputs.variation_slots,
        is_live=address(inputs.is_live, np.uint8, c_uint8),
        start=address(inputs.start, np.float64, c_double),
        start_offset=address(inputs.start_offset, np.float64, c_double),
        own_fold=address(inputs.own_fold, np.int32, c_int32),
        forms=None if inputs.forms is None else pointer(_forms(inputs.forms, address)),
        left=address(inputs.left, np.float64, c_double),
        roughness=address(inputs.roughness, np.float64, c_double),
        loss_option=address(inputs.loss_option, np.float64, c_double),
    )
    return given, keep


def _forms(forms: Forms, address: Callable[..., Any]) -> CForms:
    numbers = {name: address(getattr(forms, name), np.int32, c_int32) for name in ("n_ordered", "rises", "bends")}
    flags = {name: address(getattr(forms, name), np.uint8, c_uint8) for name in ("is_single", "is_sorted", "leads")}
    return CForms(
        **numbers,
        **flags,
        places=address(forms.places, np.float64, c_double),
        caps=address(forms.caps, np.float64, c_double),
        allows=address(forms.allows, np.uint8, c_uint8),
        sharpness=forms.sharpness,
        sorts_outputs=forms.sorts_outputs,
        n_leading=forms.n_leading,
    )
