"""The loop: which epochs it looks at, when it ends, what it keeps."""

import math
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nae.engines.torch import TorchEngine
from nae.engines.torch.scores import score_cells
from nae.errors import TrainingError
from nae.training import train
from nae.training.judging import Verdict
from nae.training.workers import ALONE
from tests.configs import training_config
from tests.training.problems import N_ROWS, Problem

QUICK = {"warmup_steps": 1, "least_steps": 0, "evaluate_every": 1, "schedule": "cosine"}


def fit(problem: Problem, validation=None, *, rows=None, callbacks=(), **config: object):
    config = training_config(**QUICK | {"max_epochs": 10} | config)
    with closing(TorchEngine(problem.job(rows, validation, config=config))) as engine:
        history = train(engine, config, callbacks=callbacks)
        return engine.network, history


def validation_of(problem: Problem, seed: int = 1):
    """Return rows whose targets are noise: they get worse as training goes on."""
    rows = problem.rows()
    return replace(rows, target=np.random.default_rng(seed).normal(size=(N_ROWS, 1)))


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
    score = score_cells(network, validation.cells)
    assert float(((score - validation.target) ** 2).mean()) == pytest.approx(min(seen))


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


def test_a_validation_loss_that_is_no_number_is_never_the_best():
    problem = Problem()
    rows = problem.rows()
    broken = replace(rows, target=np.full((N_ROWS, 1), math.nan))
    _, history = fit(problem, broken, max_epochs=3)
    assert history.best_epoch == 3


def test_a_loss_that_is_no_number_ends_training_with_the_epoch_in_the_error():
    problem = Problem()
    rows = problem.rows()
    broken = replace(rows, target=rows.target * math.inf)
    match = r"Training diverged: the loss became inf in epoch 1. Lower learning_rate, or look for extreme values"
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


class Scripted:
    """An engine of its own: it learns nothing, and loses what its script says."""

    script = (5.0, 3.0, 4.0, 2.0, 6.0, 6.0, 6.0, 6.0)
    n_batches, is_judged, dial = 1, True, None

    def __init__(self, network):
        self.given, self.n_steps = network, 0
        self.weights = dict(network.arrays)

    @property
    def network(self):
        return self.given.with_arrays(self.weights)

    def train_epoch(self, rate):
        self.n_steps += self.n_batches
        self.weights["intercept"] = np.full_like(self.weights["intercept"], self.n_steps)
        return float(self.script[self.n_steps - 1])

    def judge(self):
        return Verdict(np.full(1, self.script[self.n_steps - 1]), np.ones(1), 1.0, ALONE)

    def additivity(self):
        return None

    def snapshot(self):
        return dict(self.weights)

    def restore(self, snapshot):
        self.weights = dict(snapshot)


def test_any_engine_can_take_the_steps():
    engine = Scripted(Problem().network())
    history = train(engine, training_config(**QUICK | {"max_epochs": 8, "patience": 3, "batch_size": N_ROWS}))
    assert history.column("validation") == [5, 3, 4, 2, 6, 6, 6]
    assert (history.best_epoch, history.stopped) == (4, "no better validation loss for 3 epochs")
    assert (engine.network.arrays["intercept"] == 4).all()
