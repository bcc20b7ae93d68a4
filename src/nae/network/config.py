"""The shape of a network, apart from the data it is built for."""

from dataclasses import dataclass

from nae.errors import ConfigError

__all__ = ["NetworkConfig"]


@dataclass(frozen=True)
class NetworkConfig:
    """What a network looks like. Sizes that follow from the data are given to :class:`Network` itself."""

    encoder: str = "piecewise"
    """'piecewise' evaluates the network on knots, 'mlp' on rows (the paper)."""
    gate: str = "additive"
    """'additive', 'low-rank', 'deep' or 'diagonal'."""
    routing: str = "softmax"
    """'softmax', 'equal' or 'gumbel' (softmax after training)."""
    n_experts: int = 8
    """Experts per feature, the paper's K."""
    n_active: int = 8
    """Experts that take part, the paper's C."""
    n_members: int = 1
    """Networks trained side by side and averaged."""
    n_blocks: int = 2
    """Blocks of (linear, norm, ReLU) per feature."""
    hidden_dim: int = 64
    """Width of a block."""
    gate_rank: int = 64
    """Width of a low-rank or deep gate."""
    norm: str = "layer"
    """'layer' or 'batch' (on rows only)."""
    encoder_dropout: float = 0.0
    """Share of hidden units dropped, on rows only: on knots the noise would be common to all rows of a knot."""
    expert_dropout: float = 0.0
    """Share of expert weights dropped in training."""
    temperature: float = 0.1
    """Of the Gumbel noise."""

    def __post_init__(self) -> None:
        if not 1 <= self.n_active <= self.n_experts:
            raise ConfigError(f"n_active must be in [1, n_experts={self.n_experts}]; got {self.n_active}.")
