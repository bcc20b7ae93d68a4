"""How much of the training rows lies at each slot."""

import numpy as np

from nae._typing import Array
from nae.network import Network
from nae.training.data import RowSource
from nae.training.workers import Workers

__all__ = ["mean_slot_weight"]


def mean_slot_weight(network: Network, rows: RowSource, workers: Workers) -> Array:
    """Return how much of the training rows lies at each padded slot, with mean one: weights of a mean over slots."""
    weight = np.asarray(workers.total(rows.slot_weight(network.n_features * network.n_slots)))
    return np.asarray(weight * (len(weight) / weight.sum()))
