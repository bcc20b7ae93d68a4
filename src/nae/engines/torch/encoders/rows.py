"""A network evaluated on the rows of every batch: the paper's way."""

from torch import Tensor

from nae.engines.torch.cells import RowCells
from nae.engines.torch.encoders.base import Evaluation, ExpertSample
from nae.engines.torch.routed import Routed

__all__ = ["OnRows"]


class OnRows(Evaluation):
    """Nothing is known in advance: every batch goes through the blocks."""

    def at(self, cells: RowCells) -> tuple[Tensor, Tensor]:
        network = self.network
        slots, weights = cells.ends()
        table = network.inputs.flatten(0, 1)
        rows = (table[slots] * weights.unsqueeze(-1)).sum(dim=2).transpose(0, 1)  # (F, B, in)
        hidden = network.trunk(rows)
        own = network.spread(network.to_experts(hidden).permute(2, 1, 3, 0).flatten(2))
        if network.sorts_outputs:
            own = own.sort(dim=2).values
        return own, network.gate.at_rows(hidden)

    def score_member(self, member: int, cells: RowCells) -> Tensor:
        return self.route(cells).score[..., member : member + 1]

    def sample_experts(self, routed: Routed, weight: Tensor, slot_weight: Tensor) -> ExpertSample:
        """Return the experts of the rows."""
        return ExpertSample(routed.kept_experts, weight, is_local=True)
