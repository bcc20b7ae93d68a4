"""``tune_ray``: the search of :func:`nae.tuning.tune`, its trials side by side on a Ray cluster."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nae._optional import require
from nae.scale.cluster import connect
from nae.tuning import DEFAULT_SPACE, SearchSpace, TuningResult
from nae.tuning.evaluation import Question, evaluate
from nae.tuning.study import MEASURED, STUDY_NAME, ask_question, count_finished, make_storage, open_study, read_result
from nae.tuning.study import suggest as propose

__all__ = ["tune_ray"]

_OBJECTIVES = ("loss", "additivity")


def tune_ray(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    folder: str | Path,
    space: SearchSpace = DEFAULT_SPACE,
    n_trials: int = 30,
    n_parallel: int | None = None,
    resources: Mapping[str, float] | None = None,
    time_limit: float | None = None,
    sample_weight: Any = None,
    eval_set: Any = None,
    seed: int = 0,
    address: str | None = None,
) -> TuningResult:
    """Search with Ray Tune: the same study in the same file, many trials at a time.

    Seeds are searched like anything else: ``Choice("random_state", (0, 1, 2, 3), default=0)`` in the space.

    Parameters
    ----------
    estimator, X, y, folder, space, n_trials, time_limit, sample_weight, eval_set, seed
        As for :func:`nae.tuning.tune`; ``folder`` must be one the driver can write to.
    n_parallel
        Trials at a time; as many as the cluster has room for unless given.
    resources
        Of one trial, such as ``{"cpu": 2, "gpu": 0.5}``; one processor unless given.
    address
        Of the cluster; a Ray on this machine unless given.
    """
    question = ask_question(estimator, X, y, space, sample_weight=sample_weight, eval_set=eval_set, seed=seed)
    with connect(address), open_study(question, space, folder, seed=seed) as study:
        n_left = n_trials - count_finished(study)
        if n_left > 0:
            tune = require("ray.tune", extra="scale")
            trial = tune.with_resources(tune.with_parameters(_run_trial, question=question), resources or {"cpu": 1})
            results = tune.Tuner(
                trial,
                tune_config=tune.TuneConfig(
                    search_alg=_search(space, folder, seed=seed),
                    num_samples=n_left,
                    max_concurrent_trials=n_parallel,
                    time_budget_s=time_limit,
                ),
                run_config=tune.RunConfig(storage_path=str(Path(folder).absolute() / "ray"), verbose=0),
            ).fit()
            if results.num_errors == len(results):
                raise results.errors[0]
        return read_result(study, question)


def _run_trial(config: Mapping[str, Any], question: Question) -> dict[str, float]:
    trial = evaluate(question, config, 0)
    return {name: getattr(trial, name) for name in (*_OBJECTIVES, *MEASURED)}


def _ask(space: SearchSpace, trial: Any) -> None:
    propose(space, trial)  # Ray notes what is asked for


def _search(space: SearchSpace, folder: str | Path, *, seed: int) -> Any:
    """Return Ray's way to ask Optuna, writing to the study's file."""
    module = require("ray.tune.search.optuna", extra="scale")

    class Search(module.OptunaSearch):  # type: ignore[misc, name-defined]
        """Notes what a trial measured besides its objectives."""

        def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
            for name in MEASURED if result else ():
                self._ot_trials[trial_id].set_user_attr(name, result[name])  # type: ignore[index]
            super().on_trial_complete(trial_id, result, error)

    return Search(
        partial(_ask, space),
        metric=list(_OBJECTIVES),
        mode=["min", "max"],
        study_name=STUDY_NAME,
        storage=make_storage(folder),
        seed=seed,
    )
