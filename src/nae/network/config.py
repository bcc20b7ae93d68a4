"""The shape of a network, apart from the data it is built for."""

from dataclasses import dataclass

from nae.errors import ConfigError

__all__ = ["NetworkConfig"]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """What a network looks like. Sizes that follow from the data are given to :class:`Network` itself.

    There are no defaults here: they are those of a recipe, :mod:`nae.recipes`.
    """

    encoder: str
    """'piecewise' evaluates the network on knots, 'mlp' on rows (the paper)."""
    gate: str
    """'additive', 'low-rank', 'deep' or 'diagonal'."""
    routing: str
    """'softmax', 'equal' or 'gumbel' (softmax after training)."""
    n_experts: int
    """Experts per feature, the paper's K."""
    n_active: int
    """Experts that take part, the paper's C."""
    n_members: int
    """Networks trained side by side and averaged."""
    n_blocks: int
    """Blocks of (linear, norm, ReLU) per feature."""
    hidden_dim: int
    """Width of a block."""
    gate_rank: int
    """Width of a low-rank or deep gate."""
    norm: str
    """'layer' or 'batch' (on rows only)."""
    encoder_dropout: float
    """Share of hidden units dropped, on rows only: on knots the noise would be common to all rows of a knot."""
    expert_dropout: float
    """Share of expert weights dropped in training."""
    temperature: float
    """Temperature of the Gumbel noise."""

    def __post_init__(self) -> None:
        if not 1 <= self.n_active <= self.n_experts:
            raise ConfigError(f"n_active must be in [1, n_experts={self.n_experts}]; got {self.n_active}.")
