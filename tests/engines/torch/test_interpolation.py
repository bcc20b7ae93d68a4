"""Interpolation, as it is done on a CPU (bags) and on a GPU (products of matrices); both run here."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nae.engines.torch import interpolation
from nae.engines.torch.cells import RowCells
from nae.engines.torch.interpolation import interpolate_sum

Way = Callable[[Tensor, RowCells], Tensor]

N_ROWS, N_FEATURES, N_SLOTS, N_MEMBERS, WIDTH = 60, 4, 9, 3, 5


@pytest.fixture
def cells() -> RowCells:
    generator = torch.Generator().manual_seed(0)
    slot = torch.randint(N_SLOTS - 1, (N_ROWS, N_FEATURES), generator=generator)
    fraction = torch.rand(N_ROWS, N_FEATURES, generator=generator, dtype=torch.float64)
    fraction[fraction < 0.3] = 0.0
    slot[slot == 3] = 4  # a slot that no row has
    slot[0], fraction[0] = N_SLOTS - 1, 0.0  # the last slot has no next one
    return RowCells(slot + torch.arange(N_FEATURES) * N_SLOTS, fraction)


def looked_up(table: Tensor, cells: RowCells) -> Tensor:
    """The definition, by torch's own indexing: (F * S, C) -> (B, F, C)."""
    fraction = cells.fraction.unsqueeze(-1)
    following = table[(cells.slot + 1).clamp(max=len(table) - 1)]
    return (1 - fraction) * table[cells.slot] + fraction * following


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("way", [interpolation._gather, interpolation._multiply])
def test_values_and_gradients_are_those_of_the_definition(cells: RowCells, way: Way) -> None:
    table = draw(N_FEATURES * N_SLOTS, WIDTH)
    found, expected = way(table, cells), looked_up(table, cells)
    torch.testing.assert_close(found, expected)
    slopes = [torch.autograd.grad(values.sin().sum(), table)[0] for values in (found, expected)]
    torch.testing.assert_close(*slopes)


@pytest.mark.parametrize("way", [interpolation._gather_and_sum, interpolation._multiply_and_sum])
def test_sums_and_their_gradients_are_those_of_the_definition(cells: RowCells, way: Way) -> None:
    tables = draw(N_MEMBERS, N_FEATURES * N_SLOTS, WIDTH)
    found = way(tables, cells)
    expected = torch.stack([looked_up(table, cells).sum(dim=1) for table in tables])
    torch.testing.assert_close(found, expected)
    slopes = [torch.autograd.grad(values.sin().sum(), tables)[0] for values in (found, expected)]
    torch.testing.assert_close(*slopes)


@pytest.mark.parametrize("way", [interpolation._gather_and_sum, interpolation._multiply_and_sum])
def test_no_rows_have_no_sums(cells: RowCells, way: Way) -> None:
    # More members than folds: those that hold out nothing are validated on nothing.
    tables = draw(N_MEMBERS, N_FEATURES * N_SLOTS, WIDTH)
    assert way(tables, cells.take(torch.arange(0))).shape == (N_MEMBERS, 0, WIDTH)


def test_any_number_of_threads_gives_the_same_bits(cells: RowCells) -> None:
    def slope(n_threads: int) -> Tensor:
        before = torch.get_num_threads()
        torch.set_num_threads(n_threads)
        try:
            tables = draw(N_MEMBERS, N_FEATURES * N_SLOTS, WIDTH).detach().float().requires_grad_()
            rows = RowCells(cells.slot, cells.fraction.float())
            return torch.autograd.grad(interpolate_sum(tables, rows).sin().sum(), tables)[0]
        finally:
            torch.set_num_threads(before)

    assert torch.equal(slope(1), slope(4))
