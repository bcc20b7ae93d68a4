"""Studies on one machine: Optuna proposes settings, and every trial is saved at once, so a study can be continued."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

from nae._optional import require
from nae._processes import is_gone, this_process
from nae.errors import ConfigError, TrainingError
from nae.tuning.evaluation import PASSING, TuningProblem, evaluate
from nae.tuning.space import DEFAULT_SPACE, Range, SearchSpace
from nae.tuning.trials import Trial, TuningResult

__all__ = [
    "MEASURED",
    "STUDY_FILE",
    "STUDY_NAME",
    "count_finished",
    "make_problem",
    "make_storage",
    "note_process",
    "open_study",
    "proposal_seed",
    "read_result",
    "suggest",
    "tune",
]

STUDY_FILE = "study.log"
STUDY_NAME = "nae"
_INTERRUPTED = "interrupted"
_PROCESS = "process"  # the process that runs a trial
MEASURED = ("standard_error", "seconds", "deviation")  # results of a trial besides the two objectives


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    folder: str | Path,
    space: SearchSpace = DEFAULT_SPACE,
    n_trials: int = 30,
    n_seeds: int = 1,
    time_limit: float | None = None,
    sample_weight: Any = None,
    eval_set: Any = None,
    offset: Any = None,
    seed: int = 0,
    on_trial: Callable[[Trial], None] | None = None,
) -> TuningResult:
    """Search for settings with two objectives, a small validation loss and a high weighted additivity.

    Parameters
    ----------
    estimator
        The estimator to tune. Parameters outside the space keep their values. One member is enough to compare
        settings. All trials validate on the same rows.
    X, y, sample_weight, eval_set, offset
        As in ``fit``.
    folder
        The folder of the study, which is one file. A study that is already there is continued. It is an error if that
        study has another table, space or estimator.
    space
        The parameters that vary.
    n_trials
        The number of trials of the whole study, including those of earlier calls. The first trial has the defaults.
    n_seeds
        The number of fits per trial, each with another seed and other validation rows. Loss and additivity are means
        over the fits, and ``deviation`` is the standard deviation of the loss. All trials use the same seeds.
    time_limit
        The number of seconds after which no further trial starts.
    seed
        The random seed of the proposals. It is also the first seed of the fits if the estimator has none.
    on_trial
        A function that is called with every finished trial.

    Returns
    -------
    TuningResult
        All trials, the front of the best ones, and the recommended one.
    """
    fit_params = {"sample_weight": sample_weight, "eval_set": eval_set, "offset": offset}
    problem = make_problem(estimator, X, y, space, fit_params=fit_params, n_seeds=n_seeds, seed=seed)
    started = time.monotonic()
    with open_study(problem, space, folder, seed=seed) as study:
        for _ in range(n_trials - count_finished(study)):
            _run_trial(study, problem, space, on_trial)
            if time_limit is not None and time.monotonic() - started > time_limit:
                break
        return read_result(study, problem)


def make_problem(
    estimator: Any, X: Any, y: Any, space: SearchSpace, *, fit_params: Mapping[str, Any], n_seeds: int, seed: int
) -> TuningProblem:
    """Return the problem of a study. All trials use the same seeds, so that they validate on the same rows."""
    from sklearn.base import clone

    space.check(estimator.get_params())
    if n_seeds < 1:
        raise ConfigError(f"n_seeds must be at least 1; got {n_seeds}.")
    if n_seeds > 1 and "random_state" in space.names:
        raise ConfigError(f"random_state must not vary in the space when every trial has {n_seeds} seeds.")
    one = clone(estimator)
    if one.random_state is None:
        one.set_params(random_state=seed)
    given = {name: value for name, value in fit_params.items() if value is not None}
    return TuningProblem(one, X, y, given, _seeds(one.random_state, n_seeds))


def _seeds(first: Any, count: int) -> tuple[Any, ...]:
    """Return ``n_seeds`` seeds. The first one is ``given`` if that is a number."""
    if isinstance(first, Integral):
        return tuple(int(first) + i for i in range(count))
    return tuple(first.randint(2**31 - 1, size=count).tolist())


@contextmanager
def open_study(problem: TuningProblem, space: SearchSpace, folder: str | Path, *, seed: int) -> Iterator[Any]:
    """Yield the study in a folder. A new study begins with a trial of the defaults."""
    optuna = require("optuna", extra="tune")
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        study = optuna.create_study(
            storage=make_storage(folder),
            study_name=STUDY_NAME,
            load_if_exists=True,
            directions=["minimize", "maximize"],
            sampler=optuna.samplers.TPESampler(seed=proposal_seed(folder, seed)),
        )
        _check_same(study, problem, space, folder)
        _take_up_again(study)
        if not study.get_trials(deepcopy=False):
            study.enqueue_trial(space.defaults(), user_attrs={_PROCESS: this_process()})
        yield study
    finally:
        optuna.logging.set_verbosity(verbosity)


def note_process(trial: Any) -> None:
    """Record that this process runs a trial."""
    trial.set_user_attr(_PROCESS, this_process())


def _take_up_again(study: Any) -> None:
    """Repeat the trials whose process was killed, because they say nothing about their settings."""
    module = require("optuna.trial", extra="tune")
    states = module.TrialState
    for trial in study.get_trials(deepcopy=False, states=(states.RUNNING,)):
        if not is_gone(trial.user_attrs.get(_PROCESS, "")):
            continue
        module.Trial(study, trial._trial_id).set_user_attr(_INTERRUPTED, True)  # noqa: SLF001
        study.tell(trial.number, state=states.FAIL, skip_if_finished=True)
        params = trial.params or trial.system_attrs.get("fixed_params")
        if params:
            study.enqueue_trial(params, user_attrs={_PROCESS: this_process()})


def count_finished(study: Any) -> int:
    """Return the number of trials that have ended: failed ones count, interrupted ones do not."""
    return sum(_has_failed(trial) or trial.state.name == "COMPLETE" for trial in study.get_trials(deepcopy=False))


def _has_failed(trial: Any) -> bool:
    """Return whether the training of a trial diverged, and was not merely interrupted."""
    return trial.state.name == "FAIL" and not trial.user_attrs.get(_INTERRUPTED, False)


def make_storage(folder: str | Path) -> Any:
    """Return Optuna's storage for the file of the study. Several processes may write to it."""
    journal = require("optuna.storages.journal", extra="tune")
    storages = require("optuna.storages", extra="tune")
    return storages.JournalStorage(journal.JournalFileBackend(str(Path(folder) / STUDY_FILE)))


def suggest(space: SearchSpace, trial: Any) -> dict[str, Any]:
    """Return the settings that Optuna proposes for a trial."""
    return {
        parameter.name: trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.is_log)
        if isinstance(parameter, Range)
        else trial.suggest_categorical(parameter.name, list(parameter.options))
        for parameter in space
    }


def read_result(study: Any, problem: TuningProblem) -> TuningResult:
    """Return the trials of a study."""
    finished = study.get_trials(deepcopy=False)
    trials = tuple(_read_trial(trial) for trial in finished if trial.state.name == "COMPLETE")
    n_failed = sum(map(_has_failed, finished))
    return TuningResult(type(problem.estimator).__name__, trials, n_failed, problem.given)


def _run_trial(
    study: Any, problem: TuningProblem, space: SearchSpace, on_trial: Callable[[Trial], None] | None
) -> None:
    asked = study.ask()
    note_process(asked)
    try:
        trial = evaluate(problem, suggest(space, asked), asked.number)
    except BaseException as error:
        is_interrupted = not isinstance(error, Exception)  # Ctrl-C says nothing about the settings
        asked.set_user_attr(_INTERRUPTED, is_interrupted)
        study.tell(asked, state=require("optuna.trial", extra="tune").TrialState.FAIL)
        if isinstance(error, TrainingError):  # the settings make training diverge; the study continues with others
            return
        if is_interrupted and asked.params:
            study.enqueue_trial(asked.params)  # the next call begins with these settings
        raise
    for name in MEASURED:
        asked.set_user_attr(name, getattr(trial, name))
    study.tell(asked, [trial.loss, trial.additivity])
    if on_trial is not None:
        on_trial(trial)


def _read_trial(trial: Any) -> Trial:
    measured = {name: float(trial.user_attrs.get(name, 0.0)) for name in MEASURED}
    loss, additivity = trial.values
    return Trial(trial.number, dict(trial.params), loss=loss, additivity=additivity, **measured)


def _check_same(study: Any, problem: TuningProblem, space: SearchSpace, folder: str | Path) -> None:
    """Record what a new study is about. Raise an error if an existing study is about something else."""
    about = {
        "estimator": type(problem.estimator).__name__,
        "space": repr(space),
        "settings": repr(_fixed(problem.estimator, space)),
        "seeds": repr(problem.seeds),
        "table": problem.fingerprint(),
        "weights or validation rows": problem.fingerprint_of_rest(),
    }
    for name, value in about.items():
        before = study.user_attrs.get(name)
        if before is None:
            study.set_user_attr(name, value)
        elif before != value:
            raise ConfigError(
                "A study can be continued only with the same estimator, settings, space and table; the "
                f"{name} of the one in {folder} differs. Choose another folder, or remove {STUDY_FILE} there."
            )


def _fixed(estimator: Any, space: SearchSpace) -> Mapping[str, Any]:
    """Return the parameters that do not vary, and that change the model."""
    ignored = {*space.names, *PASSING}
    return {name: value for name, value in sorted(estimator.get_params().items()) if name not in ignored}


def proposal_seed(folder: str | Path, seed: int) -> int:
    """Return a seed for the sampler: a study that is continued must not repeat its first proposals."""
    path = Path(folder) / STUDY_FILE
    return seed + (path.read_bytes().count(b"\n") if path.exists() else 0)
