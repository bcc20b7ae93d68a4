"""From a network, its rows and its settings to what the native core reads, and why it may not read them."""

from dataclasses import dataclass

import numpy as np

from nae._typing import AnyArray, Array, BoolArray, IntArray
from nae.native import GATES, LOSSES, ROUTINGS, Inputs, Shape, Table, reason
from nae.native import Forms as NativeForms
from nae.network import ENCODERS, Forms, Network, NetworkConfig
from nae.training import Job
from nae.training.data import TrainingRows
from nae.training.dial import DialState
from nae.training.dropout import count_kept
from nae.training.losses import Loss
from nae.training.workers import ALONE, Workers

__all__ = ["Slots", "find_slots", "make_inputs", "make_shape", "make_table", "why_not"]


def why_not(network: NetworkConfig, loss: Loss, workers: Workers = ALONE) -> str:
    """Return why the native core cannot train a network; an empty text if it can."""
    if missing := reason():
        return missing
    if workers.count > 1:
        return "several workers exchange torch's gradients"
    if not ENCODERS[network.encoder].has_exact_tables:
        return f"the native core does not know encoder={network.encoder!r}"
    if network.gate not in GATES or network.routing not in ROUTINGS or loss.name not in LOSSES:
        names = f"gate={network.gate!r}, routing={network.routing!r} and loss={loss.name!r}"
        return f"the native core does not know {names} together"
    return ""


@dataclass(frozen=True, eq=False)
class Slots:
    """The slots that are evaluated, and where those of padded tables are among them.

    Each feature has the slots up to the last one that an input or a training row belongs to, and one more: it stands
    for all that no row trains.
    """

    n_slots: IntArray  # (F,), without the untrained slot
    compact: IntArray  # (F * S,), from padded to compact
    is_kept: BoolArray  # (F * S,), slots that are evaluated


def find_slots(inputs: Array, slot_weight: Array) -> Slots:
    """Return the slots for inputs (F, S, in) and weights of the training rows (F * S,)."""
    n_features, n_padded, _ = inputs.shape
    has_input = (inputs != 0).any(axis=2)
    is_trained = has_input | (slot_weight.reshape(n_features, n_padded) > 0)
    n_slots = np.where(is_trained.any(axis=1), n_padded - is_trained[:, ::-1].argmax(axis=1), 1)
    first = np.concatenate([[0], np.cumsum(n_slots + 1)[:-1]])
    position = np.arange(n_padded)
    own = np.where(is_trained, position, n_slots[:, None])
    is_kept = position < n_slots[:, None]
    return Slots(n_slots, (first[:, None] + own).astype(np.int32).ravel(), is_kept.ravel())


def make_inputs(network: Network, loss: Loss, slots: Slots, slot_weight: Array, own_fold: IntArray) -> Inputs:
    """Return what the core is built on."""
    values = network.inputs.reshape(len(slot_weight), -1)
    start, rough = network.start, network.roughness
    return Inputs(
        n_slots=slots.n_slots,
        values=values[slots.is_kept].astype(np.float64),
        slot_weight=slot_weight[slots.is_kept].astype(np.float64),
        variation_slots=float(len(slot_weight)),
        is_live=network.is_live,
        start=None if start is None else start[:-1][slots.is_kept],
        start_offset=None if start is None else start[-1],
        own_fold=own_fold,
        left=None if rough is None else rough.left.ravel()[slots.is_kept],
        roughness=None if rough is None else rough.weight.ravel()[slots.is_kept],
        forms=None if network.forms is None else _make_forms(network.forms, slots, n_members=len(own_fold)),
        loss_option=np.array(loss.options(network.n_outputs)),
    )


def _make_forms(forms: Forms, slots: Slots, *, n_members: int) -> NativeForms:
    """Return the forms as the core reads them."""
    allows = np.broadcast_to(forms.allows, (n_members, *forms.allows.shape[1:])) if forms.has_mask else None
    return NativeForms(
        n_ordered=forms.n_ordered,
        rises=forms.rises,
        bends=forms.bends,
        is_single=forms.is_single,
        is_sorted=forms.is_sorted,
        leads=forms.leads,
        places=forms.places.ravel()[slots.is_kept],
        caps=forms.caps,
        allows=allows,
        sharpness=forms.sharpness,
        sorts_outputs=forms.sorts_outputs,
        n_leading=forms.n_leading,
    )


def make_shape(job: Job, dial: DialState | None, *, batch_size: int, n_threads: int) -> Shape:
    """Return the sizes of the network, and how it is trained."""
    network, config = job.network, job.config
    own = network.config
    return Shape(
        is_double=network.dtype == np.float64,
        n_members=own.n_members,
        n_outputs=network.n_outputs,
        n_experts=own.n_experts,
        n_active=own.n_active,
        hidden=own.hidden_dim,
        n_blocks=own.n_blocks,
        gate=own.gate,
        n_terms=own.gate_rank,
        routing=own.routing,
        temperature=own.temperature,
        loss=job.loss.name,
        batch_size=batch_size,
        n_threads=n_threads,
        averaged_steps=config.averaged_steps or 0,
        n_kept=count_kept(own.expert_dropout),
        weight_decay=config.weight_decay,
        variation=config.variation_penalty if own.n_experts > 1 else 0.0,
        output=config.output_penalty,
        context=config.context_penalty if dial is None else 0.0,
        dial_target=None if dial is None else dial.target,
        dial_log_least=0.0 if dial is None else dial.log_least,
    )


def make_table(rows: TrainingRows, slots: Slots) -> Table:
    """Return rows as the core reads them."""
    dtype = rows.weight.dtype

    def array(given: AnyArray | None, kind: np.dtype | type = dtype) -> AnyArray | None:
        return None if given is None else np.ascontiguousarray(given, dtype=kind)

    is_label = not np.issubdtype(rows.target.dtype, np.floating)
    return Table(
        slot=np.ascontiguousarray(slots.compact[rows.cells.slot]),  # columns stay columns when they are looked up
        fraction=np.ascontiguousarray(rows.cells.fraction, dtype=dtype),
        target=None if is_label else array(rows.target),
        label=array(rows.target, np.int32) if is_label else None,
        weight=np.ascontiguousarray(rows.weight),
        base=array(rows.base),
        fold=array(rows.fold, np.int32),
    )
