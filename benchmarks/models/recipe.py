"""The settings of a network's training."""

from dataclasses import dataclass

__all__ = ["Recipe"]


@dataclass(frozen=True)
class Recipe:
    """The settings of the training that all networks share."""

    max_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 1e-5
    patience: int = 40
    """Epochs without progress on the validation rows before training ends."""
    output_penalty: float = 0.0
    """Weight of the mean square of an additive network's terms."""
    clip_norm: float = 1.0
