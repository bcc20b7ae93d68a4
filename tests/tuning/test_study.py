import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae import NAERegressor
from nae._typing import Array
from nae.errors import ConfigError, DataError, TrainingError
from nae.tuning import DEFAULT_SPACE, Choice, Range, SearchSpace, Trial, TuningResult, tune
from nae.tuning import study as module
from nae.tuning.evaluation import Measured, TuningProblem
from nae.tuning.evaluation import evaluate as evaluate_trial
from tests.tuning.calls import read_call

ROOT = Path(__file__).parents[2]
SPACE = SearchSpace((Range("learning_rate", 1e-3, 2e-2, default=5e-3), Choice("additivity", (None, 0.9), default=None)))


def make_rows(n_rows: int = 300) -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, 3))
    return X, X[:, 0] * np.sign(X[:, 1]) + 0.1 * random.standard_normal(n_rows)


def tiny(**params: Any) -> NAERegressor:
    return NAERegressor(n_members=1, n_experts=2, n_knots=8, hidden_dim=8, max_epochs=2, **params)


def make_trial(number: int, loss: float, additivity: float) -> Trial:
    return Trial(number, {"learning_rate": 0.004}, loss=loss, standard_error=0.05, additivity=additivity, seconds=1.0)


def test_the_search_space_needs_neither_optuna_nor_ray_nor_torch() -> None:
    code = "import nae.tuning, sys; print(*({'optuna', 'ray', 'torch', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_the_default_space_varies_parameters_of_the_estimator_around_their_defaults() -> None:
    params = NAERegressor().get_params()
    DEFAULT_SPACE.check(params)
    assert all(parameter.holds(parameter.default) for parameter in DEFAULT_SPACE)
    changed = {name: value for name, value in DEFAULT_SPACE.defaults().items() if value != params[name]}
    assert changed == {"context_penalty": 0.05}  # which the estimator writes as None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Range("a", 1.0, 2.0, default=3.0), "a: low <= default <= high must hold; got 1.0, 3.0, 2.0"),
        (lambda: Range("a", 0.0, 2.0, default=1.0), "a: a logarithmic range must be positive; it begins at 0.0"),
        (lambda: Choice("a", (1, 2), default=3), "a: the default must be one of the options; 3 is not"),
        (lambda: SearchSpace(()), "at least one; got"),
        (lambda: SPACE.without("learning_rat"), "Did you mean 'learning_rate'"),
        (lambda: SPACE.check({"learning_rate": 1.0}), "The estimator has no parameter 'additivity'"),
    ],
)
def test_a_space_that_makes_no_sense_is_an_error(make: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


def test_a_range_holds_what_lies_in_it() -> None:
    assert SPACE.parameters[0].holds(5e-3)
    assert not SPACE.parameters[0].holds(5)
    assert not SPACE.parameters[0].holds(None)
    assert SPACE.without("additivity").names == ("learning_rate",)


def test_a_study_begins_with_the_defaults_and_goes_on_where_it_was(tmp_path: Path) -> None:
    X, y = make_rows()
    seen: list[Trial] = []
    first = tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=2, on_trial=seen.append)
    assert first.trials[0].params == SPACE.defaults()
    assert [trial.number for trial in seen] == [0, 1]
    second = tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=3, on_trial=seen.append)
    assert second.trials[:2] == first.trials
    assert [trial.number for trial in seen] == [0, 1, 2]
    assert len({trial.params["learning_rate"] for trial in second.trials}) == 3
    again = tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=3, on_trial=seen.append)
    assert again == second
    assert len(seen) == 3


def test_a_trial_measures_what_an_estimator_with_its_settings_does(tmp_path: Path) -> None:
    X, y = make_rows()
    result = tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)
    trial = result.best
    model = tiny(random_state=0, **trial.params).fit(X, y)
    assert trial.loss == model.history_.best_validation
    assert trial.additivity == pytest.approx(model.explain_global().additivity_weighted)


def test_a_trial_is_the_mean_of_its_seeds(tmp_path: Path) -> None:
    X, y = make_rows()
    trial = tune(tiny(random_state=5), X, y, folder=tmp_path, space=SPACE, n_trials=1, n_seeds=3).best
    models = [tiny(random_state=seed, **trial.params).fit(X, y) for seed in (5, 6, 7)]
    losses = [model.history_.best_validation for model in models]
    errors = np.array([model.history_.standard_error for model in models])
    assert trial.loss == pytest.approx(np.mean(losses))
    assert trial.deviation == pytest.approx(np.std(losses, ddof=1))
    assert trial.deviation > 0
    assert trial.standard_error == pytest.approx(np.sqrt(np.sum(errors**2)) / 3)
    assert trial.additivity == pytest.approx(np.mean([model.explain_global().additivity_weighted for model in models]))
    again = tune(tiny(random_state=5), X, y, folder=tmp_path, space=SPACE, n_trials=1, n_seeds=3)
    assert again.best == trial  # the study remembers the deviation, too


def test_seeds_that_share_validation_rows_do_not_make_the_loss_surer() -> None:
    X, y = make_rows()
    measured = [Measured(loss, standard_error=0.3, additivity=0.5, seconds=1.0) for loss in (1.0, 2.0, 3.0, 4.0)]
    apart = TuningProblem(tiny(), X, y, {}, (0, 1, 2, 3)).average(measured, {}, 0)
    shared = TuningProblem(tiny(), X, y, {"eval_set": (X, y)}, (0, 1, 2, 3)).average(measured, {}, 0)
    assert (apart.standard_error, shared.standard_error) == (pytest.approx(0.15), pytest.approx(0.3))
    assert apart.seconds == 4.0


def test_a_random_state_that_is_no_number_gives_seeds() -> None:
    seeds = module._seeds(np.random.RandomState(0), 3)
    assert len(set(seeds)) == 3
    assert isinstance(module._seeds(np.random.RandomState(0), 1)[0], int)  # every trial has the same
    assert module._seeds(np.random.RandomState(0), 3) == seeds


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"n_seeds": 0}, "n_seeds must be at least 1; got 0"),
        (
            {"n_seeds": 2, "space": SearchSpace((Choice("random_state", (0, 1), default=0),))},
            "random_state must not vary in the space when every trial has 2 seeds",
        ),
    ],
)
def test_seeds_that_make_no_sense_are_an_error(tmp_path: Path, given: dict[str, Any], text: str) -> None:
    X, y = make_rows()
    with pytest.raises(ConfigError, match=text):
        tune(tiny(), X, y, folder=tmp_path, **{"space": SPACE, **given})


def test_a_seed_may_be_searched_like_anything_else(tmp_path: Path) -> None:
    X, y = make_rows()
    space = SearchSpace((Choice("random_state", (0, 1, 2), default=1),))
    trial = tune(tiny(), X, y, folder=tmp_path, space=space, n_trials=1).best
    assert trial.params == {"random_state": 1}
    assert trial.loss == tiny(random_state=1).fit(X, y).history_.best_validation


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"space": SPACE.without("additivity")}, "space"),
        ({"estimator": tiny(n_ramps=7)}, "settings"),
        ({"y": -make_rows()[1]}, "table"),
        ({"n_seeds": 2}, "seeds"),
        ({"sample_weight": np.full(len(make_rows()[1]), 2.0)}, "weights or validation rows"),
        ({"eval_set": make_rows()}, "weights or validation rows"),
    ],
)
def test_a_study_of_something_else_does_not_go_on(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    X, y = make_rows()
    tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)
    given = {"estimator": tiny(), "X": X, "y": y, "space": SPACE, **change}
    with pytest.raises(ConfigError, match=f"the {what} of the one in"):
        tune(**given, folder=tmp_path, n_trials=2)


def test_a_diverged_trial_is_counted_and_the_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows()
    real = evaluate_trial

    def evaluate(problem: Any, params: Any, number: int) -> Trial:
        if number == 0:
            raise TrainingError("Training diverged")
        return real(problem, params, number)

    monkeypatch.setattr(module, "evaluate", evaluate)
    result = tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=2)
    assert (result.n_failed, [trial.number for trial in result.trials]) == (1, [1])


def test_an_interrupted_trial_is_not_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows()
    with monkeypatch.context() as patch:
        patch.setattr(module, "evaluate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)
    result = tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)
    assert (result.n_failed, len(result.trials)) == (0, 1)  # it has not diverged, and is not counted


def test_an_interrupted_trial_is_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows()
    asked = []

    def interrupt(_: Any, params: Any, __: int) -> Trial:
        asked.append(params)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "evaluate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)
    result = tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)
    assert [trial.params for trial in result.trials] == asked == [SPACE.defaults()]


KILLED = """
import os, signal, sys
from pathlib import Path
from nae.tuning import tune
from tests.tuning.test_study import SPACE, make_rows, tiny
kill = lambda **_: os.kill(os.getpid(), signal.SIGKILL)
tune(tiny(callbacks=[kill]), *make_rows(), folder=Path(sys.argv[1]), space=SPACE, n_trials=1)
"""


@pytest.mark.slow
def test_a_trial_whose_process_was_killed_is_the_next_one(tmp_path: Path) -> None:
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False, cwd=ROOT)
        assert killed.returncode == -signal.SIGKILL
    X, y = make_rows()
    result = tune(tiny(callbacks=[lambda **_: None]), X, y, folder=tmp_path, space=SPACE, n_trials=2)
    assert result.trials[0].params == SPACE.defaults()
    assert (len(result.trials), result.n_failed) == (2, 0)


def test_a_trial_of_a_living_process_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows()
    asked = []

    def evaluate(problem: Any, params: Any, number: int) -> Trial:
        asked.append(params)
        if len(asked) == 1:  # another search begins before this trial ends
            tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)
        return make_trial(number, 1.0, 0.5)

    monkeypatch.setattr(module, "evaluate", evaluate)
    tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=2)
    assert asked[0] == SPACE.defaults()
    assert asked[1] != SPACE.defaults()


def test_a_study_whose_trials_all_diverge_says_so() -> None:
    with pytest.raises(TrainingError, match="No trial of the study finished; the training of 3 diverged"):
        TuningResult("NAERegressor", (), n_failed=3)
    with pytest.raises(TrainingError, match=r"No trial of the study finished in time. Raise time_limit"):
        TuningResult("NAERegressor", ())


def test_rows_to_validate_on_are_needed(tmp_path: Path) -> None:
    X, y = make_rows(1)
    with pytest.raises(DataError, match="Tuning needs rows to validate on; all 1 are used for training"):
        tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)


def test_no_trial_begins_after_the_time_limit(tmp_path: Path) -> None:
    X, y = make_rows()
    assert len(tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=9, time_limit=1e-9).trials) == 1


def test_the_front_holds_what_no_other_trial_beats() -> None:
    trials = (make_trial(0, 0.5, 0.5), make_trial(1, 0.4, 0.4), make_trial(2, 0.6, 0.45), make_trial(3, 0.44, 0.6))
    result = TuningResult("NAERegressor", trials)
    assert [trial.number for trial in result.front] == [1, 3]
    assert result.best.number == 1
    assert result.chosen.number == 3  # within a standard error of the best, and more additive


def test_beyond_a_standard_error_the_best_is_chosen() -> None:
    result = TuningResult("NAERegressor", (make_trial(0, 0.4, 0.4), make_trial(1, 0.46, 0.9)))
    assert result.chosen.number == 0


def test_the_code_of_a_trial_makes_its_estimator() -> None:
    trial = replace(make_trial(0, 0.4, 0.4), params={"learning_rate": 0.0041234567, "batch_size": None, "gate": "deep"})
    text = TuningResult("NAERegressor", (trial,)).code()
    assert text == "NAERegressor(learning_rate=0.004123, gate='deep')"
    name, params = read_call(text)
    assert name == "NAERegressor"
    assert NAERegressor(**params).gate == "deep"


def test_a_setting_that_is_refused_does_not_block_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows()
    with monkeypatch.context() as patch:
        patch.setattr(module, "evaluate", lambda *_: (_ for _ in ()).throw(ConfigError("no")))
        with pytest.raises(ConfigError, match="no"):
            tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1)
    result = tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=2)
    assert result.trials[0].params != SPACE.defaults()


@pytest.mark.parametrize("given", [{"eval_set": [make_rows()]}, {"sample_weight": 2.0}], ids=["list", "number"])
def test_a_search_takes_what_a_fit_takes(tmp_path: Path, given: dict[str, Any]) -> None:
    X, y = make_rows()
    assert len(tune(tiny(), X, y, folder=tmp_path, space=SPACE, n_trials=1, **given).trials) == 1


def test_the_code_of_a_trial_has_what_did_not_vary(tmp_path: Path) -> None:
    X, y = make_rows()
    estimator = tiny(loss="huber", huber_delta=1.234567, random_state=3)
    text = tune(estimator, X, y, folder=tmp_path, space=SPACE, n_trials=1).code()
    made = NAERegressor(**read_call(text)[1])
    assert (made.loss, made.huber_delta, made.max_epochs) == ("huber", 1.234567, estimator.max_epochs)
    assert made.n_members == NAERegressor().n_members  # one is enough to compare settings; a model has all


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
def test_the_picture_shows_all_trials(backend: str) -> None:
    trials = (make_trial(0, 0.5, 0.5), make_trial(1, 0.4, 0.4), make_trial(2, 0.6, 0.45), make_trial(3, 0.44, 0.6))
    drawn = TuningResult("NAERegressor", trials).plot(backend=backend)
    if backend == "plotly":
        assert sorted(len(trace.x) for trace in drawn.data) == [2, 2]
    else:
        assert sorted(len(line.get_xdata()) for line in drawn.lines) == [1, 2, 2]
