"""How a running mean of the weights moves, in which the noise of single batches averages out."""

__all__ = ["share_of_step"]

_YOUNG = 10  # after n steps, the mean looks back about n / 10 steps at most: early weights are far away


def share_of_step(n_steps: int, horizon: int) -> float:
    """Return the share that the weights after ``n_steps`` steps have in the mean."""
    return max(1 / horizon, _YOUNG / (n_steps + _YOUNG))
