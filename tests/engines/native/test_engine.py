"""The native engine by itself: threads, instructions, states, and what it refuses."""

import signal
import threading
import time
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nae.encoding import Cells
from nae.engines import choose_place
from nae.engines.native import NativeEngine, why_not
from nae.engines.torch import TorchEngine
from nae.errors import ConfigError
from nae.native import INSTRUCTIONS, best_instructions, is_here, reason
from nae.training import make_loss, train
from nae.training.workers import Alone
from tests.configs import training_config
from tests.engines.native.problems import Problem, assert_same

pytestmark = pytest.mark.skipif(not is_here(), reason=reason())

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"training": {"context_penalty": 0.1}},
    "dial": {"training": {"additivity": 0.9}, "n_folds": 3},
    "averaged": {"training": {"averaged_steps": 4}, "n_folds": 3},
    "one member": {"network": {"n_members": 1}, "training": {"context_penalty": 0.1}, "n_folds": 3},
    "one member, with a dial": {"network": {"n_members": 1}, "training": {"additivity": 0.9}, "n_folds": 3},
    "low-rank, with dropout": {"network": {"gate": "low-rank", "expert_dropout": 0.3}},
    "Gumbel noise, with dropout": {"network": {"routing": "gumbel", "gate": "diagonal", "expert_dropout": 0.3}},
    "classes": {"loss": "cross-entropy", "n_outputs": 3},
}


def kind_of(name: str, **changes: Any) -> Problem:
    own = dict(KINDS[name])
    network = {"n_members": 3} | own.pop("network", {})
    return Problem(network=network, **own, **changes)


def run(problem: Problem, *, n_threads: int = 1, instructions: str = "best", n_epochs: int = 2) -> dict[str, Any]:
    """Return what a few epochs leave, with so many threads."""
    one = NativeEngine(problem.job(n_threads=n_threads), instructions=instructions)
    losses = [one.train_epoch(lambda _: 0.01) for _ in range(n_epochs)]
    verdict = one.judge()
    judged = {} if verdict is None else {"judged": verdict.losses}
    return dict(one.snapshot()) | {"losses": np.array(losses)} | judged


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n_threads", [2, 3, 5, 8, 16])
def test_any_number_of_threads_finds_the_same_bits(name: str, n_threads: int) -> None:
    one, other = (run(kind_of(name), n_threads=n) for n in (1, n_threads))
    assert all(np.array_equal(array, other[key]) for key, array in one.items())


def test_threads_that_wait_leave_the_processor_to_others() -> None:
    # Threads that spun would take the time of a core each until the slowest one is done.
    problem = kind_of("dial").but(
        n_rows=2000, network={"n_members": 2}, training={"additivity": 0.9, "batch_size": 500}
    )
    seconds = {}
    for n_threads in (1, 16):
        one = NativeEngine(problem.job(n_threads=n_threads))
        started = time.process_time()
        for _ in range(10):
            one.train_epoch(lambda _: 0.01)
        seconds[n_threads] = time.process_time() - started
    assert seconds[16] < 3 * seconds[1], seconds


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("instructions", INSTRUCTIONS[1:])
def test_every_set_of_instructions_finds_the_same_but_for_rounding(name: str, instructions: str) -> None:
    if INSTRUCTIONS.index(instructions) > INSTRUCTIONS.index(best_instructions()):
        pytest.skip(f"the processor has no {instructions}")
    problem = kind_of(name, is_double=True)
    one, other = run(problem), run(problem, instructions=instructions)
    assert_same(other, one, tolerance=1e-6)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("left", [NativeEngine, TorchEngine])
def test_it_goes_on_from_a_state_that_either_engine_left(name: str, left: type[Any]) -> None:
    problem = kind_of(name, is_double=True)
    one, other = problem.engine(left), problem.engine(NativeEngine)
    one.train_epoch(lambda _: 0.01)
    state = one.state()
    other.load(replace(state, arrays={name: array.copy() for name, array in state.arrays.items()}))
    losses = [engine.train_epoch(lambda _: 0.01) for engine in (one, other)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-9)
    assert_same(other.snapshot(), one.snapshot(), tolerance=1e-6)


def test_torch_goes_on_from_a_state_of_the_core() -> None:
    problem = kind_of("averaged", is_double=True)
    one, other = problem.engine(NativeEngine), problem.engine(TorchEngine)
    one.train_epoch(lambda _: 0.01)
    other.load(one.state())
    assert other.train_epoch(lambda _: 0.01) == pytest.approx(one.train_epoch(lambda _: 0.01), rel=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_a_snapshot_brings_the_weights_back(name: str) -> None:
    one = kind_of(name).engine(NativeEngine)
    snapshot = one.snapshot()
    one.train_epoch(lambda _: 0.05)
    assert not np.array_equal(one.snapshot()["expert_weight"], snapshot["expert_weight"])
    one.restore(snapshot)
    found = one.snapshot()
    assert all(np.array_equal(array, found[key]) for key, array in snapshot.items())


def test_the_network_has_what_is_kept() -> None:
    one = kind_of("averaged").engine(NativeEngine)
    one.train_epoch(lambda _: 0.01)
    kept, verdict = one.snapshot(), one.judge()
    assert_same(one.network.arrays, kept, tolerance=0.0)
    weights = {name: one.state().arrays[f"network/{name}"] for name in kept}
    assert not np.array_equal(weights["expert_weight"], kept["expert_weight"])  # the mean, and not the last step's
    assert verdict is not None
    assert one.judge().loss == verdict.loss
    one.restore({**kept, "intercept": kept["intercept"] + 1.0})
    assert one.judge().loss != verdict.loss


def test_rows_may_lie_in_memory_column_by_column() -> None:
    problem = kind_of("plain")
    rows = problem.rows()
    cells = Cells(np.asfortranarray(rows.cells.slot), np.asfortranarray(rows.cells.fraction))
    other = NativeEngine(problem.job(rows=replace(rows, cells=cells)))
    assert other.train_epoch(lambda _: 0.01) == NativeEngine(problem.job()).train_epoch(lambda _: 0.01)


def test_a_run_ends_as_that_of_torch() -> None:
    problem = kind_of("dial", is_double=True)
    config = training_config(
        batch_size=23, max_epochs=12, evaluate_every=1, additivity=0.9, n_folds=3, patience=3, least_steps=0
    )
    histories = []
    for kind in (TorchEngine, NativeEngine):
        with closing(kind(problem.job(config=config))) as engine:
            histories.append(train(engine, config))
    assert histories[0].best_validation is not None
    for column in ("loss", "validation", "additivity"):
        found, wanted = (np.array(one.column(column), dtype=float) for one in reversed(histories))
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_an_interrupt_does_not_wait_for_the_end_of_an_epoch(request: pytest.FixtureRequest) -> None:
    one = Problem(n_rows=30, training={"batch_size": 1}).engine(NativeEngine)
    order = np.broadcast_to(np.zeros(1, dtype=np.int64), (10**9, 1))  # hours of steps
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background jobs ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        one._train(one._table, order, lambda _: 0.0)
    assert 0 < one.n_steps < len(order)


@pytest.mark.parametrize(
    ("problem", "complaint"),
    [
        (Problem(network={"encoder": "mlp"}), "encoder='mlp'"),
    ],
)
def test_what_it_does_not_cover_is_left_to_torch(problem: Problem, complaint: str) -> None:
    assert complaint in why_not(problem.make_network().config, make_loss("squared"), Alone())
    with pytest.raises(ConfigError, match=complaint):
        problem.engine(NativeEngine)
    assert chosen("auto", problem) == "torch"


def test_what_it_covers_is_left_to_it_unless_torch_is_asked_for() -> None:
    assert chosen("auto", Problem()) == "native"
    assert chosen("torch", Problem()) == "torch"


def test_workers_are_left_to_torch() -> None:
    class Two(Alone):
        count = 2

    assert "workers" in why_not(Problem().make_network().config, make_loss("squared"), Two())


def chosen(name: str, problem: Problem) -> str:
    network = problem.make_network().config
    return choose_place(name, "cpu", network=network, loss=make_loss("squared")).engine
