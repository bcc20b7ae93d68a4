"""How a network is trained."""

from dataclasses import dataclass

__all__ = ["TrainingConfig"]


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Schedule, penalties and limits of a training. Its defaults are those of a recipe, :mod:`nae.recipes`."""

    learning_rate: float
    """Largest step size, after warm-up."""
    weight_decay: float
    """Decoupled decay of AdamW."""
    batch_size: int
    """Rows in a step; as many as there are makes every step a full one."""
    max_epochs: int
    """Passes over the rows; the step size falls to zero over them."""
    patience: int | None
    """Epochs without a better validation loss before stopping; None never stops early."""
    least_steps: int
    """Steps before which 'plateau' waits on: some tables are learned once more after validation has got worse."""
    warmup_steps: int
    """Steps over which the step size rises."""
    variation_penalty: float
    """Weight of the spread of the experts, the paper's lambda."""
    output_penalty: float
    """Weight of the mean square of the contributions."""
    additivity: float | None
    """The additivity the dial aims at."""
    initial_penalty: float
    """The weight the dial starts from."""
    time_limit: float | None
    """Seconds after which training stops at the next epoch."""
    schedule: str
    """'cosine' falls to zero over the epochs; 'plateau' stays until validation stops improving, then falls."""
    cooldown: float
    """Steps of the fall of 'plateau', as a share of those that led to the best epoch."""
    averaged_steps: int | None
    """The weights that are judged and kept are a mean over about so many steps; None takes them as they are."""
    evaluate_every: int
    """Epochs between two looks at the validation rows."""
    n_folds: int | None
    """Parts of the rows that members hold out, one each and in turn; None is one for every member."""
    context_penalty: float
    """Weight of the context's share of each contribution's variance; the least weight when the dial is used."""
