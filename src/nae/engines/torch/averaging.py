"""A running mean of the weights, in which the noise of single batches averages out."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Parameter

from nae.training.averaging import share_of_step

__all__ = ["RunningMean"]


class RunningMean:
    """The mean of the weights over about the last ``horizon`` steps."""

    def __init__(self, parameters: Iterable[Parameter], *, horizon: int) -> None:
        self.parameters = list(parameters)
        self.horizon = horizon
        self._means = [each.detach().clone() for each in self.parameters]

    @torch.no_grad()
    def update(self, n_steps: int) -> None:
        """Update the mean with the weights as they are after ``n_steps`` steps."""
        share = share_of_step(n_steps, self.horizon)
        torch._foreach_lerp_(self._means, [each.detach() for each in self.parameters], share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Exchange weights and means for a block."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def settle(self) -> None:
        """Leave the means in place of the weights when training is over."""
        self._swap()

    @torch.no_grad()
    def restart(self) -> None:
        """Begin again at the weights as they are now."""
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
        # Nothing is copied. After the second exchange, a captured step finds the weights where they were.
        for at, each in enumerate(self.parameters):
            each.data, self._means[at] = self._means[at], each.data
