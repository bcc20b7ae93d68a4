"""Torch: the network that is trained, and the tables it leaves behind. Not imported after training."""

from nae.network.config import NetworkConfig
from nae.network.inputs import piecewise_inputs, quantile_inputs
from nae.network.network import Network, Routed

__all__ = ["Network", "NetworkConfig", "Routed", "piecewise_inputs", "quantile_inputs"]
