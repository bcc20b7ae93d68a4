"""How a network is trained."""

from dataclasses import dataclass

__all__ = ["TrainingConfig"]


@dataclass(frozen=True)
class TrainingConfig:
    """Schedule, penalties and limits of a run."""

    learning_rate: float = 3e-3
    """Largest step size, after warm-up."""
    weight_decay: float = 1e-2
    """Decoupled decay of AdamW."""
    batch_size: int = 1024
    """Rows in a step; as many as there are makes every step a full one."""
    max_epochs: int = 100
    """Passes over the rows; the step size falls to zero over them."""
    patience: int | None = None
    """Epochs without a better validation loss before stopping; None never stops early."""
    least_steps: int = 0
    """Steps before which 'plateau' waits on: some tables are learned once more after validation has got worse."""
    warmup_steps: int = 50
    """Steps over which the step size rises."""
    variation_penalty: float = 0.0
    """Weight of the spread of the experts, the paper's lambda."""
    output_penalty: float = 0.0
    """Weight of the mean square of the contributions."""
    additivity: float | None = None
    """The additivity the dial aims at."""
    initial_penalty: float = 0.1
    """The weight the dial starts from."""
    time_limit: float | None = None
    """Seconds after which training stops at the next epoch."""
    schedule: str = "cosine"
    """'cosine' falls to zero over the epochs; 'plateau' stays until validation stops improving, then falls."""
    cooldown: float = 0.5
    """Steps of the fall of 'plateau', as a share of those that led to the best epoch."""
    averaged_steps: int | None = None
    """The weights that are judged and kept are a mean over about so many steps; None takes them as they are."""
    evaluate_every: int = 1
    """Epochs between two looks at the validation rows."""
    n_folds: int | None = None
    """Parts of the rows that members hold out, one each and in turn; None is one for every member."""
    context_penalty: float = 0.0
    """Weight of the context's share of each contribution's variance; the least weight when the dial is used."""
