"""Networks of torch with drawn weights, and cells for them."""

from typing import Any

import numpy as np
import torch

from nae.encoding import Cells, Columns, Schema
from nae.engines.torch import TorchNetwork
from nae.engines.torch.cells import RowCells
from nae.network import Network, NetworkConfig, draw_network
from nae.training.assemble import padded_slots

__all__ = ["cells_of", "make_torch", "moved", "row_cells"]


def make_torch(
    config: NetworkConfig, inputs: np.ndarray, n_outputs: int, *, seed: int = 0, **given: Any
) -> TorchNetwork:
    """Return a network in double precision, unless another one is given."""
    random = np.random.default_rng(seed)
    return TorchNetwork(draw_network(config, inputs, n_outputs, random=random, **{"dtype": np.float64} | given))


def moved(network: Network, *, seed: int = 1, share: float = 0.3) -> Network:
    """Return the network with noise on all that a lost bias, scale or norm would not be missed in."""
    random = np.random.default_rng(seed)

    def noise(name: str, shape: tuple[int, ...]) -> np.ndarray:
        return random.uniform(size=shape) if "running" in name else random.normal(size=shape)

    return network.with_arrays(
        {name: array + share * noise(name, array.shape) for name, array in network.arrays.items()}
    )


def row_cells(cells: Cells) -> RowCells:
    """Return cells as tensors that share their memory."""
    return RowCells(torch.as_tensor(cells.slot), torch.as_tensor(cells.fraction))


def cells_of(schema: Schema, table: Columns, *, on_knots: bool = False) -> RowCells:
    """Return the padded cells of a table, or those of the nearest knots."""
    cells = schema.locate(table)
    slot = cells.nearest if on_knots else cells.slot
    fraction = np.zeros_like(cells.fraction) if on_knots else cells.fraction
    return row_cells(Cells(padded_slots(schema)[slot], fraction))
