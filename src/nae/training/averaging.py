"""A running mean of the weights: what single batches did to them averages out, and what is left can be judged."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Parameter

__all__ = ["RunningMean"]

_YOUNG = 10  # steps of a mean that has only begun: the weights still move too fast to look far back


class RunningMean:
    """The mean of the weights over about the last ``horizon`` steps."""

    def __init__(self, parameters: Iterable[Parameter], *, horizon: int) -> None:
        self.parameters = list(parameters)
        self.horizon = horizon
        self._means = [each.detach().clone() for each in self.parameters]

    @torch.no_grad()
    def update(self, n_steps: int) -> None:
        """Take in the weights after so many steps."""
        share = max(1 / self.horizon, _YOUNG / (n_steps + _YOUNG))
        torch._foreach_lerp_(self._means, [each.detach() for each in self.parameters], share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the means where the weights are, for a block."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def settle(self) -> None:
        """Leave the means where the weights are: training is over."""
        self._swap()

    @torch.no_grad()
    def restart(self) -> None:
        """Go on from the weights as they are now."""
        for mean, each in zip(self._means, self.parameters, strict=True):
            mean.copy_(each)

    def tensors(self) -> dict[str, Tensor]:
        """Return the means by position."""
        return {str(at): mean for at, mean in enumerate(self._means)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Put the means back."""
        for key, tensor in tensors.items():
            self._means[int(key)].copy_(tensor)

    def _swap(self) -> None:
        # Memory changes hands, nothing is copied; a captured step finds the weights where they were once they are back.
        for at, each in enumerate(self.parameters):
            each.data, self._means[at] = self._means[at], each.data
