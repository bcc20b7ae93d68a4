"""Forms of all kinds for a network, drawn at random."""

import numpy as np

from nae.encoding import Schema
from nae.encoding.schema import Number
from nae.network import Forms, Network

__all__ = ["draw_forms"]


def draw_forms(network: Network, schema: Schema, *, seed: int) -> Forms:
    """Return forms that every engine and gate can hold."""
    random, config = np.random.default_rng(seed), network.config
    n, n_members = network.n_features, config.n_members
    n_ordered = np.array([f.n_values if isinstance(f, Number) else 1 for f in schema.features])
    places = np.zeros((n, network.n_slots))
    for i in range(n):
        places[i, : n_ordered[i]] = np.cumsum(random.uniform(0.2, 1.0, n_ordered[i]))
        places[i] /= places[i].max()
    rises = random.integers(-1, 2, n) * (n_ordered > 1)
    is_summed = config.gate in ("additive", "diagonal")
    allows = random.random((n_members if random.random() < 0.5 else 1, n, n)) < 0.7
    sorts_outputs = bool(random.random() < 0.3)
    caps = random.uniform(0.05, 3.0, (n, 1 if sorts_outputs else network.n_outputs)) + np.zeros((n, network.n_outputs))
    return Forms(
        n_ordered=n_ordered,
        places=places,
        rises=rises,
        bends=random.integers(-1, 2, n) * (n_ordered > 1),
        caps=np.where(random.random((n, 1)) < 0.5, np.inf, caps),
        is_single=random.random(n) < 0.2,
        is_sorted=random.random(n) < 0.5,
        sorts_outputs=sorts_outputs,
        leads=(rises != 0) & (random.random(n) < 0.7) & (config.n_experts > 1),
        allows=allows if is_summed else np.broadcast_to(allows[:, :, :1], allows.shape),
        n_leading=0 if is_summed else int(random.integers(1, config.gate_rank + 1)),
        sharpness=float(random.choice([0.1, 1.0])),
    )
