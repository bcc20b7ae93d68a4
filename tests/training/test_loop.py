"""The loop: which rows a step sees, when it ends, what it keeps."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from nae.errors import TrainingError
from nae.training import TrainingConfig, make_loss, train
from nae.training.loop import _Run
from nae.training.workers import Alone
from tests.training.problems import N_ROWS, Problem


def run(problem: Problem, rows=None, **config: object) -> _Run:
    return _Run(problem.network(), make_loss("squared"), TrainingConfig(**config), rows or problem.rows())


def fit(problem: Problem, validation=None, *, rows=None, callbacks=(), **config: object):
    network = problem.network()
    config = TrainingConfig(**{"max_epochs": 10, "warmup_steps": 1} | config)
    history = train(
        network,
        rows or problem.rows(),
        validation,
        make_loss("squared"),
        config,
        generator=torch.Generator().manual_seed(0),
        callbacks=callbacks,
    )
    return network, history


def validation_of(problem: Problem, seed: int = 1):
    """Return rows whose targets are noise: they get worse as training goes on."""
    rows = problem.rows()
    noise = torch.as_tensor(np.random.default_rng(seed).normal(size=(N_ROWS, 1)))
    return type(rows)(rows.cells, noise, rows.weight, None)


@pytest.mark.parametrize("batch_size", [10, 16, 64, 1000])
def test_batches_are_of_one_size_and_hold_no_row_twice(batch_size):
    one = run(Problem(), batch_size=batch_size)
    parts = list(Problem().rows().batches(one.n_batches, one.batch_size, torch.Generator().manual_seed(0)))
    assert len({len(part) for part in parts}) == 1
    rows = torch.cat(parts).tolist()
    assert len(rows) == len(set(rows)) > N_ROWS - len(parts)
    assert len(parts) == max(1, round(N_ROWS / batch_size))


def test_epochs_shuffle_differently_and_repeat_with_the_seed():
    rows, generator = Problem().rows(), torch.Generator().manual_seed(0)
    first, second = (torch.cat(list(rows.batches(4, 16, generator))) for _ in range(2))
    again = torch.cat(list(rows.batches(4, 16, torch.Generator().manual_seed(0))))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_the_step_size_rises_then_falls_to_zero_along_a_cosine():
    one = run(Problem(), batch_size=16, max_epochs=25, warmup_steps=10)
    rates = [one._rate(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.1, rel=0.01)
    assert int(np.argmax(rates)) == 9
    assert np.all(np.diff(rates[10:]) < 0)
    assert rates[-1] == pytest.approx(0, abs=1e-12)


def test_a_plateau_keeps_the_step_size_until_it_cools_down():
    one = run(Problem(), schedule="plateau", warmup_steps=4)
    assert [one._rate(step) for step in (0, 3, 500)] == [0.25, 1, 1]
    one.n_steps, one.history.best_epoch = 100, 80
    one.cool_down("validation stopped improving")
    assert one.cooling_steps == 40
    assert [one._rate(step) for step in (100, 120, 140, 150)] == [1, 0.5, 0, 0]
    assert not one.has_cooled_down
    one.n_steps = 140
    assert one.has_cooled_down


def test_members_are_trained_as_if_each_were_alone():
    problem = Problem(n_members=2)
    alone = Problem(n_members=1)
    both, single = (
        run(problem, variation_penalty=0.3, output_penalty=0.2),
        run(alone, variation_penalty=0.3, output_penalty=0.2),
    )
    with torch.no_grad():  # the lone network is the first of the two
        for mine, other in zip(single.network.parameters(), both.network.parameters(), strict=True):
            axis = next(i for i, (a, b) in enumerate(zip(mine.shape, other.shape, strict=True)) if a != b)
            mine.copy_(other.narrow(axis, 0, 1))
    both.step(problem.rows())
    single.step(alone.rows())
    for mine, other in zip(single.network.parameters(), both.network.parameters(), strict=True):
        axis = next(i for i, (a, b) in enumerate(zip(mine.shape, other.shape, strict=True)) if a != b)
        torch.testing.assert_close(mine.grad, other.grad.narrow(axis, 0, 1))


def test_a_member_never_sees_the_rows_it_holds_out():
    problem = Problem(n_members=2)
    fold = np.arange(N_ROWS) % 4
    gradients = []
    for shift in (0.0, 100.0):
        rows = problem.folded(fold)
        rows.target[fold == 0] += shift
        one = run(problem, rows)
        one.step(rows)
        gradients.append(one.network.expert_weight.grad.clone())
    first, second = (torch.abs(gradients[0] - gradients[1])[..., member].max() for member in (0, 1))
    assert first == 0
    assert second > 0.1


def test_members_are_validated_on_the_rows_they_hold_out():
    problem = Problem(n_members=2)
    fold = np.arange(N_ROWS) % 4
    rows = problem.folded(fold)
    one = run(problem, rows)
    with torch.no_grad():
        error = (one.network.eval()(rows.cells).score[:, 0] - rows.target) ** 2
    expected = torch.cat([error[fold == 0, 0], error[fold == 1, 1]]).mean()
    assert one.validate(None) == pytest.approx(float(expected))


def test_validation_is_the_loss_of_the_members_mean():
    problem = Problem(n_members=3)
    rows = validation_of(problem)
    one = run(problem)
    with torch.no_grad():
        score = one.network.eval()(rows.cells).score.mean(dim=-1)
    assert one.validate(rows) == pytest.approx(float(((score - rows.target) ** 2).mean()))
    assert one.validate(None) is None


def test_training_lowers_the_loss():
    _, history = fit(Problem(), max_epochs=150, learning_rate=1e-2)
    losses = history.column("loss")
    assert losses[-1] < 0.3 * losses[0]
    assert history.stopped == "ran all epochs"
    assert history.best_epoch == len(history) == 150


def test_the_network_is_left_at_its_best_epoch():
    problem = Problem()
    validation = validation_of(problem)
    network, history = fit(problem, validation, max_epochs=60, learning_rate=2e-2)
    seen = history.column("validation")
    assert history.best_epoch == int(np.argmin(seen)) + 1 < 60
    with torch.no_grad():
        score = network(validation.cells).score.mean(dim=-1)
    assert float(((score - validation.target) ** 2).mean()) == pytest.approx(min(seen))
    assert not network.training


def test_waiting_ends_after_so_many_epochs_without_progress():
    problem = Problem()
    _, history = fit(problem, validation_of(problem), max_epochs=500, patience=7, learning_rate=2e-2)
    assert len(history) == history.best_epoch + 7
    assert history.stopped == "no better validation loss for 7 epochs"


def test_a_plateau_ends_after_cooling_down():
    problem = Problem()
    _, history = fit(
        problem, validation_of(problem), max_epochs=2000, patience=7, learning_rate=2e-2, schedule="plateau"
    )
    assert len(history) < 2000
    assert history.stopped == "validation stopped improving, and the step size fell to zero"


def test_validation_may_be_looked_at_less_often():
    problem = Problem()
    _, history = fit(problem, validation_of(problem), max_epochs=10, evaluate_every=4)
    assert [epoch.epoch for epoch in history if epoch.validation is not None] == [4, 8, 10]
    assert history.best_epoch in (4, 8, 10)


def test_every_epoch_is_looked_at_while_the_step_size_falls():
    problem = Problem()
    _, history = fit(
        problem, validation_of(problem), schedule="plateau", patience=10, max_epochs=2000, evaluate_every=10
    )
    looked = [epoch.epoch for epoch in history if epoch.validation is not None]
    began = next(later for earlier, later in pairwise(looked) if later == earlier + 1) - 1
    assert began % 10 == 0
    assert looked == [*range(10, began, 10), *range(began, len(history) + 1)]


def test_the_last_epoch_in_time_is_looked_at():
    problem = Problem()
    _, history = fit(problem, validation_of(problem), max_epochs=100_000, evaluate_every=50_000, time_limit=0.05)
    assert history.best_validation is not None


def test_why_the_step_size_fell_is_said():
    problem = Problem()
    _, history = fit(problem, validation_of(problem), schedule="plateau", patience=None, max_epochs=60)
    assert history.stopped == "the epochs came to an end, and the step size fell to zero"


def test_what_no_training_row_holds_is_validated_as_the_mean_of_the_rest():
    problem = Problem()
    rows = problem.rows()
    one = run(problem)
    n_slots = one.network.inputs.shape[1]
    share = one.slot_share.view(-1, n_slots)
    untouched = n_slots - 1
    assert (share[:, untouched] == 0).all()
    experts, _ = one.network.evaluate_knots()
    evaluation = one.network.evaluate().filled(one.slot_share)
    filled = evaluation.experts
    own = experts.view(len(share), n_slots, -1)
    expected = (share[0] / share[0].sum()) @ own[0]
    torch.testing.assert_close(filled.view_as(own)[0, untouched], expected)
    touched = share > 0
    assert torch.equal(filled.view_as(own)[touched], own[touched])
    slot = rows.cells.slot.clone()
    slot[:, 0] = untouched  # an unseen value of the first feature
    unseen = type(rows)(type(rows.cells)(slot, rows.cells.fraction * 0), rows.target, rows.weight, None)
    with torch.no_grad():
        score = evaluation.route(unseen.cells).score.mean(dim=-1)
    assert one.validate(unseen) == pytest.approx(float(((score - unseen.target) ** 2).mean()))


def test_a_row_that_two_members_hold_out_does_not_make_the_loss_surer():
    problem, fold = Problem(n_members=4), np.arange(N_ROWS) % 2
    one = run(problem, problem.folded(fold), n_folds=2)
    found = one._validation_losses(None)
    assert found is not None
    losses = found[0]
    assert len(losses) == 2 * N_ROWS
    expected = float(losses.std(unbiased=False)) / math.sqrt(N_ROWS)
    assert one.standard_error(None) == pytest.approx(expected)


def test_members_beyond_the_folds_hold_them_out_again():
    problem = Problem(n_members=3)
    fold = np.arange(N_ROWS) % 2
    one = run(problem, problem.folded(fold), n_folds=2)
    assert one.own_fold.tolist() == [0, 1, 0]
    held_out = one.held_out
    assert held_out is not None
    assert [len(rows) for rows in held_out] == [32, 32, 32]
    assert torch.equal(held_out[2].target, held_out[0].target)


def test_workers_drop_other_weights_each():
    class Second(Alone):
        rank = 1

    first, second = (
        _Run(one.network(), make_loss("squared"), TrainingConfig(), one.rows(), workers)
        for one, workers in ((Problem(dropout=0.5), Alone()), (Problem(dropout=0.5), Second()))
    )
    assert int(second.network.noise - first.network.noise) == 2**40


def test_a_validation_loss_that_is_no_number_is_never_the_best():
    problem = Problem()
    rows = problem.rows()
    broken = type(rows)(rows.cells, torch.full((N_ROWS, 1), math.nan, dtype=torch.float64), rows.weight, None)
    _, history = fit(problem, broken, max_epochs=3)
    assert history.best_epoch == 3


def test_a_loss_that_is_no_number_ends_training_with_the_epoch_in_the_error():
    problem = Problem()
    rows = problem.rows()
    broken = type(rows)(rows.cells, rows.target * math.inf, rows.weight, None)
    match = r"Training diverged: the loss became (inf|nan) in epoch 1. Lower learning_rate, or look for extreme values"
    with pytest.raises(TrainingError, match=match):
        fit(problem, rows=broken)


def test_a_time_limit_ends_training():
    _, history = fit(Problem(), max_epochs=100_000, time_limit=0.05)
    assert history.stopped == "time limit of 0.05 s"
    assert history[-1].seconds >= 0.05


def test_a_callback_without_a_name_may_stop_training():
    class Stop:
        def __call__(self, **_: object) -> bool:
            return True

    _, history = fit(Problem(), callbacks=[Stop()])
    assert history.was_asked_to_stop
    assert len(history) == 1
    assert history.stopped == "a callback asked to stop"


def test_a_callback_may_answer_with_a_boolean_of_numpy():
    _, history = fit(Problem(), callbacks=[lambda **_: np.bool_(True)])
    assert len(history) == 1


def test_one_expert_needs_no_dial():
    assert run(Problem(n_experts=1), additivity=0.9).dial is None
    assert run(Problem(n_experts=2), additivity=0.9).dial is not None


def test_an_offset_is_added_to_the_score():
    problem = Problem()
    rows = problem.rows()
    shifted = type(rows)(rows.cells, rows.target + 5, rows.weight, torch.full((N_ROWS, 1), 5.0, dtype=torch.float64))
    plain, moved = run(problem), run(problem)
    torch.testing.assert_close(plain.step(rows), moved.step(shifted))
