"""Torch: the network that is trained, and the tables it leaves behind. Not imported after training."""

from nae.network.config import NetworkConfig
from nae.network.encoders import ENCODERS, Evaluation
from nae.network.inputs import piecewise_inputs, quantile_inputs
from nae.network.network import Network
from nae.network.routed import Routed

__all__ = ["ENCODERS", "Evaluation", "Network", "NetworkConfig", "Routed", "piecewise_inputs", "quantile_inputs"]
