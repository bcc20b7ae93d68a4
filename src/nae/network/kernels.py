"""The parts of a step that torch does in many passes over memory, each in one: compiled, for training on a CPU.

torch's own operations stay the reference, and what runs on a GPU, in double precision, or where numba is missing.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nae._typing import AnyArray
from nae.network.cells import RowCells
from nae.network.config import NetworkConfig

__all__ = ["Kernels", "can_compile"]


def can_compile(config: NetworkConfig) -> bool:
    """Return whether there are kernels for such a network: a softmax of all experts on knots, gates that add up."""
    return (
        config.encoder == "piecewise"
        and config.routing == "softmax"
        and config.n_active == config.n_experts > 1
        and config.gate != "diagonal"
        and not config.expert_dropout
        and _has_numba()
    )


def _has_numba() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError:  # not installed, or not for this numpy
        return False
    return True


class Kernels:
    """The kernels of a network, with the threads they run on."""

    def __init__(self, config: NetworkConfig, n_outputs: int) -> None:
        self.config, self.n_outputs = config, n_outputs
        self.n_threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def norm_relu(self, linear: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """Return ReLU(scale * norm(linear) + shift); linear is (M, F, N, width), scale and shift (M, F, 1, width)."""
        out: Tensor = _NormRelu.apply(self, linear, scale, shift)  # type: ignore[no-untyped-call]
        return out

    def sum_terms(self, terms: Tensor, cells: RowCells) -> Tensor:
        """Return the summed gate terms (M, B, width) of a batch from (M, F * S, width)."""
        out: Tensor = _SumTerms.apply(self, terms, cells)  # type: ignore[no-untyped-call]
        return out

    def route(self, experts: Tensor, logits: Tensor, cells: RowCells, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return contributions (B, O, F, M) and the weighted mean routing (F, K, M).

        ``experts`` is (F * S, K * O * M), ``logits`` (M, B, K * F).
        """
        out: tuple[Tensor, Tensor] = _Route.apply(self, experts, logits, cells, weight)  # type: ignore[no-untyped-call]
        return out

    def share(self, count: int, work: Callable[[int, int], None]) -> None:
        """Call ``work`` with ranges that together cover ``count``, one for every thread."""
        bounds = [count * i // self.n_threads for i in range(self.n_threads + 1)]
        ranges = [(first, last) for first, last in pairwise(bounds) if last > first]
        waiting = [self._pool.submit(work, *part) for part in ranges[1:]] if self._pool else []
        work(*ranges[0])
        for one in waiting:
            one.result()


class _NormRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernels: Kernels, linear: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        from nae.network import jit

        n_groups, (n_rows, width) = linear.shape[0] * linear.shape[1], linear.shape[2:]
        linear = linear.contiguous()
        out, moments = torch.empty_like(linear), linear.new_empty(n_groups, n_rows, 2)
        given = (
            _array(linear, n_groups, n_rows, width),
            _array(scale, n_groups, width),
            _array(shift, n_groups, width),
        )
        made = (_array(out, n_groups, n_rows, width), moments.numpy())
        kernels.share(n_groups, lambda first, last: jit.norm_relu(*given, first, last, *made))
        ctx.save_for_backward(linear, scale, out, moments)
        ctx.kernels = kernels
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        from nae.network import jit

        linear, scale, out, moments = ctx.saved_tensors
        (n_groups, n_rows, _), width = moments.shape, linear.shape[-1]
        d_linear, d_scale, d_shift = torch.empty_like(linear), torch.empty_like(scale), torch.empty_like(scale)
        shape = (n_groups, n_rows, width)
        given = (_array(linear, *shape), _array(scale, n_groups, width), _array(out, *shape), moments.numpy())
        made = (_array(d_linear, *shape), _array(d_scale, n_groups, width), _array(d_shift, n_groups, width))
        slope = _array(d_out, *shape)
        ctx.kernels.share(n_groups, lambda first, last: jit.norm_relu_back(*given, slope, first, last, *made))
        return None, d_linear, d_scale, d_shift


class _SumTerms(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernels: Kernels, terms: Tensor, cells: RowCells) -> Tensor:
        from nae.network import jit

        n_members, ctx.n_slots, width = terms.shape
        out = terms.new_empty(n_members, len(cells.slot), width)
        given = (cells.slot.numpy(), cells.fraction.numpy(), _array(terms, *terms.shape))
        kernels.share(n_members, lambda first, last: jit.sum_terms(*given, first, last, out.numpy()))
        ctx.kernels, ctx.cells = kernels, cells
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        from nae.network import jit

        n_members, _, width = d_out.shape
        d_terms = d_out.new_zeros(n_members, ctx.n_slots, width)
        given = (ctx.cells.slot.numpy(), ctx.cells.fraction.numpy(), _array(d_out, *d_out.shape))
        ctx.kernels.share(n_members, lambda first, last: jit.sum_terms_back(*given, first, last, d_terms.numpy()))
        return None, d_terms, None


class _Route(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernels: Kernels, experts: Tensor, logits: Tensor, cells: RowCells, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        from nae.network import jit

        config, (n_rows, n_features) = kernels.config, cells.slot.shape
        compiled, _ = jit.route(config.n_members)
        out = experts.new_empty(n_rows, kernels.n_outputs, n_features, config.n_members)
        routing = experts.new_empty(n_rows, n_features, config.n_experts, config.n_members)
        mean = experts.new_empty(n_features, config.n_experts, config.n_members)
        rows = (cells.slot.numpy(), cells.fraction.numpy(), weight.numpy())
        given = (
            _array(experts, *experts.shape),
            _array(logits, config.n_members, n_rows, config.n_experts, n_features),
        )
        made = (out.numpy(), routing.numpy(), mean.numpy())
        kernels.share(n_features, lambda first, last: compiled(*rows, *given, first, last, *made))
        ctx.save_for_backward(experts, routing)
        ctx.kernels, ctx.rows, ctx.shape = kernels, rows, logits.shape
        return out, mean / n_rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, d_mean: Tensor) -> tuple[Tensor | None, ...]:
        from nae.network import jit

        kernels, (experts, routing) = ctx.kernels, ctx.saved_tensors
        config, (n_rows, n_features) = kernels.config, routing.shape[:2]
        _, compiled = jit.route(config.n_members)
        d_experts, d_logits = torch.zeros_like(experts), experts.new_empty(ctx.shape)
        given = (_array(experts, *experts.shape), routing.numpy(), _array(d_out, *d_out.shape))
        made = (
            d_experts.numpy(),
            _array(d_logits, config.n_members, n_rows, config.n_experts, n_features),
        )
        d_sum = _array(d_mean / n_rows, *d_mean.shape)
        kernels.share(n_features, lambda first, last: compiled(*ctx.rows, *given, d_sum, first, last, *made))
        return None, d_experts, d_logits, None, None


def _array(tensor: Tensor, *shape: int) -> AnyArray:
    """Return a contiguous tensor's memory as an array of a shape."""
    array: AnyArray = tensor.detach().contiguous().view(shape).numpy()
    return array
