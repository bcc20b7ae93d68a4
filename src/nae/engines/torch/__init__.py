"""torch as an engine: for GPUs, for the paper's encoder, and for several workers. Only this package needs torch."""

from nae.engines.torch.engine import TorchEngine
from nae.engines.torch.network import TorchNetwork

__all__ = ["TorchEngine", "TorchNetwork"]
