"""Encoders by name: each one owns the inputs of a network, how it starts, and where it is evaluated."""

from nae.network.encoders.base import Encoder, Evaluation
from nae.network.encoders.knots import KnotEncoder
from nae.network.encoders.rows import RowEncoder

__all__ = ["ENCODERS", "Encoder", "Evaluation"]

ENCODERS: dict[str, Encoder] = {"piecewise": KnotEncoder(), "mlp": RowEncoder()}
