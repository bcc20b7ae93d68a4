"""``tune_ray``: the search of :func:`nae.tuning.tune` with parallel trials on a Ray cluster."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from nae._optional import require
from nae.scale.cluster import cause_of, connect
from nae.tuning import DEFAULT_SPACE, SearchSpace, Trial, TuningResult
from nae.tuning.evaluation import Measured, TuningProblem, measure
from nae.tuning.study import (
    MEASURED,
    STUDY_NAME,
    count_finished,
    make_problem,
    make_storage,
    note_process,
    open_study,
    proposal_seed,
    read_result,
)
from nae.tuning.study import suggest as propose

__all__ = ["tune_ray"]

_OBJECTIVES = ("loss", "additivity")
_SEED = "__seed__"  # which of the problem's seeds a job takes; goes beside its parameters


def tune_ray(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    folder: str | Path,
    space: SearchSpace = DEFAULT_SPACE,
    n_trials: int = 30,
    n_seeds: int = 1,
    n_parallel: int | None = None,
    resources: Mapping[str, float] | None = None,
    time_limit: float | None = None,
    sample_weight: Any = None,
    eval_set: Any = None,
    offset: Any = None,
    seed: int = 0,
    on_trial: Callable[[Trial], None] | None = None,
    address: str | None = None,
) -> TuningResult:
    """Search with Ray Tune: the same study in the same file, with many fits at a time.

    Every seed of every trial is a separate job.

    Parameters
    ----------
    estimator, X, y, folder, space, n_trials, n_seeds, sample_weight, eval_set, offset, seed, on_trial
        As in :func:`nae.tuning.tune`. The driver must be able to write to ``folder``.
    n_parallel
        The largest number of parallel jobs. If None, as many as the cluster has room for.
    resources
        The resources of one job, such as ``{"cpu": 2, "gpu": 0.5}``. Default: one processor.
    time_limit
        The number of seconds after which all jobs are ended. Unfinished trials do not count.
    address
        The address of the cluster. If None, a Ray is started on this machine.
    """
    fit_params = {"sample_weight": sample_weight, "eval_set": eval_set, "offset": offset}
    problem = make_problem(estimator, X, y, space, fit_params=fit_params, n_seeds=n_seeds, seed=seed)
    with connect(address), open_study(problem, space, folder, seed=seed) as study:
        n_left = n_trials - count_finished(study)
        if n_left > 0:
            tune = require("ray.tune", extra="scale")
            job = tune.with_resources(tune.with_parameters(_run_job, problem=problem), resources or {"cpu": 1})
            tuner = tune.Tuner(
                job,
                tune_config=tune.TuneConfig(
                    search_alg=_search(problem, space, folder, seed=seed, on_trial=on_trial),
                    num_samples=n_left * n_seeds,
                    max_concurrent_trials=n_parallel,
                    time_budget_s=time_limit,
                ),
                run_config=tune.RunConfig(storage_path=str(Path(folder).absolute() / "ray"), verbose=0),
            )
            with _quiet():
                results = tuner.fit()
            if results.num_errors == len(results):
                error = results.errors[0]
                raise cause_of(error) from error
        return read_result(study, problem)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Ray Tune from printing a page for every failed job. The error is raised and is in Ray's files."""
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the new output cannot be silenced
    log = logging.getLogger("ray.tune")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _run_job(config: Mapping[str, Any], problem: TuningProblem) -> dict[str, float]:
    params = {name: value for name, value in config.items() if name != _SEED}
    return asdict(measure(problem, params, problem.seeds[config[_SEED]]))


@dataclass(eq=False)
class _Group:
    """The jobs of one proposal, one per seed. Optuna knows the proposal by its first job."""

    params: dict[str, Any]
    jobs: list[str] = field(default_factory=list)
    measured: dict[str, Measured] = field(default_factory=dict)
    n_ended: int = 0
    has_failed: bool = False

    def end(self, job: str, result: Mapping[str, Any] | None, *, is_error: bool) -> None:
        """Record the result of a job; a job that was cut short has none."""
        self.n_ended += 1
        self.has_failed |= is_error
        if result and "loss" in result:
            self.measured[job] = Measured(**{one.name: float(result[one.name]) for one in fields(Measured)})


def _search(
    problem: TuningProblem,
    space: SearchSpace,
    folder: str | Path,
    *,
    seed: int,
    on_trial: Callable[[Trial], None] | None,
) -> Any:
    """Return Ray's search algorithm for Optuna, which writes to the file of the study."""
    module = require("ray.tune.search.optuna", extra="scale")
    n_seeds = len(problem.seeds)
    groups: list[_Group] = []

    class Search(module.OptunaSearch):  # type: ignore[misc, name-defined]
        """Give each proposal to one job per seed, and tell Optuna their mean when all have ended."""

        def suggest(self, trial_id: str) -> dict[str, Any]:
            if not groups or len(groups[-1].jobs) == n_seeds:
                groups.append(_Group(super().suggest(trial_id)))
            groups[-1].jobs.append(trial_id)
            return {**groups[-1].params, _SEED: len(groups[-1].jobs) - 1}

        def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
            group = next(group for group in groups if trial_id in group.jobs)
            group.end(trial_id, result, is_error=error)
            if group.n_ended == n_seeds:
                self._tell(group)

        def _tell(self, group: _Group) -> None:
            first = group.jobs[0]
            if len(group.measured) < n_seeds:
                super().on_trial_complete(first, error=group.has_failed)
                return
            asked = self._ot_trials[first]
            trial = problem.average([group.measured[job] for job in group.jobs], group.params, asked.number)
            for name in MEASURED:
                asked.set_user_attr(name, getattr(trial, name))
            super().on_trial_complete(first, {name: getattr(trial, name) for name in _OBJECTIVES})
            if on_trial is not None:
                on_trial(trial)

    return Search(
        partial(_ask, space),
        metric=list(_OBJECTIVES),
        mode=["min", "max"],
        study_name=STUDY_NAME,
        storage=make_storage(folder),
        seed=proposal_seed(folder, seed),
    )


def _ask(space: SearchSpace, trial: Any) -> None:
    note_process(trial)
    propose(space, trial)  # Ray records the parameters that are asked for
