"""``fit_members``: fit one model, with one Ray job per member."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from nae.engines import Place, choose_place
from nae.errors import ConfigError
from nae.estimators import NAEClassifier, NAERegressor
from nae.estimators.fitting import Fitted, Run, fit_model, guards_of
from nae.estimators.given import State
from nae.estimators.prepared import Prepared
from nae.scale.cluster import cause_of, connect
from nae.scale.merge import merge_fits
from nae.scanning.scan import Scan
from nae.training import TrainingRows

__all__ = ["fit_members"]

Estimator = TypeVar("Estimator", NAEClassifier, NAERegressor)


def fit_members(
    estimator: Estimator,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    eval_set: Any = None,
    offset: Any = None,
    resources: Mapping[str, float] | None = None,
    address: str | None = None,
) -> Estimator:
    """Fit an estimator in place, with one job per member on a Ray cluster, and return it.

    The rows are encoded once by the calling process and sent to the jobs. Each member has the same knots, scale, rows
    and fold as in ``estimator.fit``, and stops by its own validation loss. If the machine of a job is lost, the job is
    run again.

    Parameters
    ----------
    estimator
        The estimator to fit. Its callbacks are called in the jobs; ``time_limit`` and ``additivity`` apply per member.
    X, y, sample_weight, eval_set, offset
        As in ``fit``. The table must be in memory.
    resources
        The resources of one job, such as ``{"cpu": 2, "gpu": 0.5}``. If None, an equal share of the cluster. A job with
        a GPU trains on it, unless ``engine='native'``.
    address
        The address of the cluster. If None, a Ray is started on this machine. An existing connection is reused.
    """
    if isinstance(X, Scan):
        raise ConfigError("Members are trained apart on rows in memory; X is a scan of files. Use nae.scale.fit_ray.")
    with connect(address) as ray:
        available = _read_resources(ray) if resources is None else resources
        has_gpu = available.get("gpu", 0) > 0 and estimator.engine != "native"
        places: list[Place] = []

        def train(prepared: Prepared, run: Run) -> Fitted:
            places.append(_place_jobs(prepared, estimator.engine, has_gpu=has_gpu))
            return _train_apart(replace(prepared, place=places[-1]), run, ray=ray, resources=resources)

        estimator.fit_with(train, X, y, sample_weight=sample_weight, eval_set=eval_set, offset=offset)
    model, place = estimator.model_, places[-1]
    estimator.model_ = replace(model, training=replace(model.training, device=place.device, engine=place.engine))
    return estimator


def _place_jobs(prepared: Prepared, engine: str, *, has_gpu: bool) -> Place:
    """Return where members are trained: on the GPU of each job, or on processors, whatever this machine has."""
    if has_gpu:
        return Place("torch", "cuda", "where members are trained")
    return choose_place(engine, "cpu", network=prepared.settings.network, loss=prepared.task.loss)


def _train_apart(prepared: Prepared, run: Run, *, ray: Any, resources: Mapping[str, float] | None) -> Fitted:
    """Fit like ``fit_model``, with one job per member."""
    n_members, state = prepared.settings.network.n_members, prepared.state
    wanted = _share_out(_read_resources(ray), n_members) if resources is None else dict(resources)
    n_cpus, n_gpus = wanted.pop("cpu", 1), wanted.pop("gpu", 0)
    n_gpus = 0 if prepared.place.device == "cpu" else n_gpus
    run = replace(run, n_jobs=run.n_jobs or max(1, int(n_cpus)))
    shared = ray.put((replace(prepared, state=None), run))  # all jobs need it
    job = ray.remote(num_cpus=n_cpus, num_gpus=n_gpus, resources=wanted)(_train_member)
    jobs = [job.remote(shared, member, _own_state(state, member)) for member in range(n_members)]
    try:
        fits = ray.get(jobs)
    except BaseException as error:
        for one in jobs:  # a shared cluster would continue them
            ray.cancel(one, force=True)
        raise cause_of(error) from error
    return merge_fits(
        fits,
        prepared.cells,
        prepared.weights,
        has_own_rows=prepared.validation is None,
        guards=guards_of(prepared) if prepared.settings.has_clamps else None,
    )


def _train_member(shared: tuple[Prepared, Run], member: int, state: State | None) -> Fitted:
    """Train one member on all rows except its fold, as a network with one member."""
    prepared, run = shared
    settings = prepared.settings
    source = prepared.source
    if isinstance(source, TrainingRows) and source.fold is not None and settings.n_folds is not None:
        is_own = source.fold == member % settings.n_folds
        # Member 0 is the only one there.
        prepared = replace(prepared, source=replace(source, fold=(~is_own).astype(np.int64)))
    # Clamps are those of the members together.
    settings = replace(settings, network=replace(settings.network, n_members=1), has_clamps=False)
    return fit_model(replace(prepared, settings=settings, seed=prepared.seed + member, state=state), run)


def _own_state(state: State | None, member: int) -> State | None:
    """Return the network of one member from the network of all members."""
    if state is None:
        return None
    prefix = f"{member}."
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def _read_resources(ray: Any) -> dict[str, float]:
    """Return the numbers of processors and GPUs of a cluster."""
    found = ray.cluster_resources()
    return {"cpu": found.get("CPU", 1), "gpu": found.get("GPU", 0)}


def _share_out(available: Mapping[str, float], n_jobs: int) -> dict[str, float]:
    """Return an equal share of a cluster: at least one processor and at most one GPU."""
    return {"cpu": max(1, int(available["cpu"] // n_jobs)), "gpu": min(1.0, available["gpu"] / n_jobs)}
