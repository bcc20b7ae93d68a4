"""Steps replayed on a GPU: at these sizes, launching kernels one by one costs more than running them."""

from collections.abc import Callable

import torch
from torch import Tensor

from nae.engines.torch.rows import TensorRows

__all__ = ["Replay"]

_WARM_UP = 3  # eager steps before capture, as torch asks for; they count as steps


class Replay:
    """A step captured as a CUDA graph, and replayed on other rows.

    ``step`` takes the step and returns its loss; ``prepare`` is called before the capture and drops old gradients, so
    that the graph has gradients of its own. The memory of ``rows`` must stay where it is.
    """

    def __init__(
        self,
        step: Callable[[TensorRows], Tensor],
        rows: TensorRows,
        *,
        batch_size: int,
        prepare: Callable[[], None],
    ) -> None:
        self.take_step, self.rows, self.prepare = step, rows, prepare
        self.batch = torch.zeros(batch_size, dtype=torch.int64, device=rows.weight.device)
        self.stream = torch.cuda.Stream(rows.weight.device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.value = torch.zeros((), device=rows.weight.device)
        self.n_warm = 0

    def step(self, part: Tensor) -> Tensor:
        """Take one step on the rows ``part`` and return its loss."""
        self.batch.copy_(part)
        if self.n_warm < _WARM_UP:
            self.n_warm += 1
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                value = self.take_step(self.rows.take(self.batch))
            torch.cuda.current_stream().wait_stream(self.stream)
            return value
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            self.prepare()
            with torch.cuda.graph(self.graph):
                self.value = self.take_step(self.rows.take(self.batch))
        self.graph.replay()
        return self.value
