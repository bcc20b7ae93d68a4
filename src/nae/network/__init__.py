"""Networks as numpy arrays: what an engine trains, and the tables that it leaves behind."""

from nae.network.config import NetworkConfig
from nae.network.encoders import ENCODERS, Encoder
from nae.network.forms import Forms
from nae.network.gates import GATES, Gate
from nae.network.inputs import piecewise_inputs, quantile_inputs
from nae.network.network import ADDITIONS, START, Network, below, draw_network
from nae.network.roughness import Roughness

__all__ = [
    "ADDITIONS",
    "ENCODERS",
    "GATES",
    "START",
    "Encoder",
    "Forms",
    "Gate",
    "Network",
    "NetworkConfig",
    "Roughness",
    "below",
    "draw_network",
    "piecewise_inputs",
    "quantile_inputs",
]
