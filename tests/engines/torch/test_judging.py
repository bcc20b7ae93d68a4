"""Judges: whose loss on which rows decides, and how sure it is."""

import math
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch

from nae.engines.torch import TorchNetwork
from nae.engines.torch.encoders.knots import OnKnots
from nae.engines.torch.judging import GivenRows, Judge, NoRows, make_judge
from nae.engines.torch.losses import loss_per_row
from nae.training import TrainingRows, make_loss
from nae.training.data import own_folds
from nae.training.judging import Verdict
from nae.training.workers import ALONE
from tests.engines.torch.networks import row_cells
from tests.training.problems import N_ROWS, Problem

LOSS = loss_per_row(make_loss("squared"))


def judge_of(
    problem: Problem, rows: TrainingRows, validation: TrainingRows | None = None, n_folds: int | None = None
) -> Judge:
    own_fold = torch.as_tensor(own_folds(problem.config.n_members, n_folds))
    return make_judge(rows, validation, own_fold=own_fold, slot_weight=slot_weight_of(problem))


def slot_weight_of(problem: Problem) -> torch.Tensor:
    inputs = problem.network().inputs
    return torch.as_tensor(problem.rows().slot_weight(inputs.shape[0] * inputs.shape[1]))


def torch_of(problem: Problem) -> TorchNetwork:
    return TorchNetwork(problem.network()).eval()


@torch.no_grad()
def scores_of(network: TorchNetwork, rows: TrainingRows) -> np.ndarray:
    """Return the scores of all members, (B, O, M)."""
    return network(row_cells(rows.cells)).score.numpy()


def verdict_of(judge: Judge, network: TorchNetwork) -> Verdict:
    verdict = judge.judge(network, LOSS, ALONE)
    assert verdict is not None
    return verdict


def test_members_are_judged_on_the_rows_they_hold_out() -> None:
    problem, fold = Problem(n_members=2), np.arange(N_ROWS) % 4
    rows, network = problem.folded(fold), torch_of(problem)
    error = (scores_of(network, rows)[:, 0] - rows.target) ** 2
    expected = np.concatenate([error[fold == 0, 0], error[fold == 1, 1]]).mean()
    assert verdict_of(judge_of(problem, rows), network).loss == pytest.approx(float(expected))


def test_given_rows_are_judged_by_the_members_mean() -> None:
    problem = Problem(n_members=3)
    rows, network = problem.rows(), torch_of(problem)
    shifted = replace(rows, base=np.full((N_ROWS, 1), 0.5))
    score = scores_of(network, rows).mean(axis=-1)
    for one, offset in ((rows, 0.0), (shifted, 0.5)):
        expected = float(((score + offset - rows.target) ** 2).mean())
        assert verdict_of(judge_of(problem, rows, one), network).loss == pytest.approx(expected)


def test_given_rows_win_over_folds_and_without_both_nobody_judges() -> None:
    problem = Problem()
    folded = problem.folded(np.arange(N_ROWS) % 4)
    assert isinstance(judge_of(problem, folded, problem.rows()), GivenRows)
    nobody = judge_of(problem, problem.rows())
    assert isinstance(nobody, NoRows)
    assert nobody.judge(torch_of(problem), LOSS, ALONE) is None
    assert nobody.additivity(torch_of(problem)) is None


def test_weights_count_as_repeated_rows() -> None:
    problem, counts = Problem(), np.arange(N_ROWS) % 3 + 1
    rows, network = problem.rows(), torch_of(problem)
    weighted = replace(rows, weight=counts.astype(np.float64))
    repeated = rows.take(np.repeat(np.arange(N_ROWS), counts))
    found, expected = (verdict_of(judge_of(problem, rows, one), network).loss for one in (weighted, repeated))
    assert found == pytest.approx(expected)


def test_what_no_training_row_holds_is_judged_as_the_mean_of_the_rest() -> None:
    problem = Problem()
    rows, network, share = problem.rows(), torch_of(problem), slot_weight_of(Problem())
    n_slots = network.inputs.shape[1]
    untouched = n_slots - 1
    assert share.view(-1, n_slots)[0, untouched] == 0
    slot = rows.cells.slot.copy()
    slot[:, 0] = untouched  # an unseen value of the first feature
    unseen = replace(rows, cells=type(rows.cells)(slot, rows.cells.fraction * 0))
    cells = row_cells(unseen.cells)
    experts, terms = (table.detach().clone() for table in network.evaluate_knots())
    for table in (experts, *terms):
        own = table.view(2, n_slots, -1)
        own[0, untouched] = (share[:n_slots] / share[:n_slots].sum()) @ own[0]
    with torch.no_grad():
        score = (
            replace(cast("OnKnots", network.evaluate()), experts=experts, terms=terms).route(cells).score.mean(dim=-1)
        )
        unfilled = network(cells).score.mean(dim=-1)
    expected = float(((score.numpy() - rows.target) ** 2).mean())
    assert verdict_of(judge_of(problem, rows, unseen), network).loss == pytest.approx(expected)
    assert not torch.allclose(unfilled, score)


def test_a_row_that_two_members_hold_out_does_not_make_the_loss_surer() -> None:
    problem, fold = Problem(n_members=4), np.arange(N_ROWS) % 2
    verdict = verdict_of(judge_of(problem, problem.folded(fold), n_folds=2), torch_of(problem))
    assert len(verdict.losses) == 2 * N_ROWS
    expected = float(verdict.losses.std()) / math.sqrt(N_ROWS)
    assert verdict.standard_error == pytest.approx(expected)


def test_members_beyond_the_folds_hold_them_out_again() -> None:
    problem, fold = Problem(n_members=3), np.arange(N_ROWS) % 2
    rows, network = problem.folded(fold), torch_of(problem)
    error = (scores_of(network, rows)[:, 0] - rows.target) ** 2
    expected = np.concatenate([error[fold == member % 2, member] for member in range(3)])
    np.testing.assert_allclose(verdict_of(judge_of(problem, rows, n_folds=2), network).losses, expected)


def test_additivity_is_measured_on_the_rows_that_judge() -> None:
    mixed = Problem()
    network, flat = torch_of(mixed), torch_of(mixed)
    with torch.no_grad():
        flat.gate.weight.zero_()  # every row mixes its experts alike
    for rows, validation in ((mixed.rows(), mixed.rows()), (mixed.folded(np.arange(N_ROWS) % 4), None)):
        judge = judge_of(mixed, rows, validation)
        assert judge.additivity(flat) == pytest.approx(1.0)
        assert judge.additivity(network) < 0.999
