"""How much of the training rows lies at each slot."""

from torch import Tensor

from nae.network import Network
from nae.training.data import RowSource
from nae.training.workers import Workers

__all__ = ["mean_slot_weight"]


def mean_slot_weight(network: Network, rows: RowSource, workers: Workers) -> Tensor:
    """Return how much of the training rows lies at each padded slot, with mean one: weights of a mean over slots."""
    n_features, n_slots, _ = network.inputs.shape
    weight = workers.total(rows.slot_weight(n_features * n_slots))
    return weight * (len(weight) / weight.sum())
