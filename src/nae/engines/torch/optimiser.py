"""AdamW, with one fused kernel of torch for each step.

The class ``torch.optim.AdamW`` imports torch's compiler, which takes longer than fitting a small table.
"""

from collections.abc import Iterable, Mapping
from itertools import chain

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim.adamw import adamw

__all__ = ["AdamW"]


class AdamW:
    """Moves parameters, and keeps their moments; ``rate`` is the step size."""

    def __init__(self, parameters: Iterable[Parameter], *, weight_decay: float) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        self.is_on_gpu = self.parameters[0].is_cuda
        # On a GPU everything that changes is a tensor, so that a captured step can be replayed.
        self.rate: Tensor | float = torch.zeros((), device=self.parameters[0].device) if self.is_on_gpu else 0.0
        self._state = [
            {
                "step": torch.zeros((), device=each.device),
                "exp_avg": torch.zeros_like(each, requires_grad=False),
                "exp_avg_sq": torch.zeros_like(each, requires_grad=False),
            }
            for each in self.parameters
        ]

    def set_rate(self, rate: float) -> None:
        """Set the step size."""
        if isinstance(self.rate, Tensor):
            self.rate.fill_(rate)
        else:
            self.rate = rate

    def forget_gradients(self) -> None:
        """Drop the gradients of the last step."""
        for each in self.parameters:
            each.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        moved = [
            (each, state) for each, state in zip(self.parameters, self._state, strict=True) if each.grad is not None
        ]
        adamw(
            [each for each, _ in moved],
            [each.grad for each, _ in moved if each.grad is not None],
            [state["exp_avg"] for _, state in moved],
            [state["exp_avg_sq"] for _, state in moved],
            [],
            [state["step"] for _, state in moved],
            fused=True,
            capturable=self.is_on_gpu,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return moments and step counts by position and name."""
        named = ([(f"{at}/{name}", value) for name, value in state.items()] for at, state in enumerate(self._state))
        return dict(chain.from_iterable(named))

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Put moments and step counts back; those that are missing stay as they are."""
        for key, tensor in tensors.items():
            at, name = key.split("/")
            self._state[int(at)][name].copy_(tensor)
