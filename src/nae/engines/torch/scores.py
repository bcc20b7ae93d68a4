"""Scores of a network at any place between its knots."""

import numpy as np
import torch

from nae._typing import Array
from nae.encoding import Cells
from nae.engines.torch.cells import RowCells
from nae.engines.torch.network import TorchNetwork
from nae.network import Network

__all__ = ["score_cells"]


@torch.no_grad()
def score_cells(network: Network, cells: Cells) -> Array:
    """Return the mean score of the members at padded positions, (B, O)."""
    made = TorchNetwork(network).eval()
    at = RowCells(torch.as_tensor(cells.slot), torch.as_tensor(cells.fraction.astype(network.dtype)))
    return np.asarray(made(at).score.mean(dim=-1).double().numpy())
