"""How many expert weights a step keeps where a share of them is dropped."""

__all__ = ["CHANCES", "count_kept"]

CHANCES = 256  # a random byte decides whether a weight is kept


def count_kept(share: float) -> int:
    """Return how many of 256 weights are kept where a share of them is dropped."""
    return max(1, round(CHANCES * (1 - share)))
