"""From a call of ``fit`` to a model: read and encode the rows, train, assemble. The estimator keeps what is learned."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nae._typing import AnyArray
from nae._warnings import warn
from nae.engines import halve_batch_until_it_fits
from nae.errors import ConfigError, DataError
from nae.estimators.calibrating import calibrated
from nae.estimators.evidence import remember_evidence
from nae.estimators.fitting import Fitted, Run, fit_model
from nae.estimators.given import Given, State
from nae.estimators.heldout import remember_held_out
from nae.estimators.path import PathPoint, Train, fit_path
from nae.estimators.prepared import Prepared, prepare_table
from nae.estimators.reading import Expected, read_callbacks
from nae.estimators.smoothing import fit_smoothest
from nae.estimators.threads import one_blas_thread, read_threads
from nae.parameters import Parameters
from nae.scanning.scan import Scan
from nae.tables.model import TableModel
from nae.tables.promises import mirrored_promises
from nae.tables.summary import AdditivityEntry, TrainingSummary
from nae.tables.working import working_threads
from nae.training import History
from nae.training.balance import balance
from nae.training.checkpoint import Checkpoints
from nae.training.workers import ALONE, Workers

__all__ = ["Learned", "learn"]

_MISSED = 0.03  # additivity that may be missing without a warning


@dataclass(frozen=True, eq=False)
class Learned:
    """What a fit leaves behind."""

    model: TableModel
    history: History
    state: State | None
    """The network, if the next fit is to go on with it."""
    table_error: float
    expected: Expected
    """The columns that later tables must have."""
    labels: AnyArray | None
    """The classes as ``y`` has them."""
    path: tuple[PathPoint, ...] | None
    """With ``additivity='auto'``, every model that was considered."""
    smoothness: float | None
    """With ``smoothness='auto'``, the one that was chosen."""


def learn(
    given: Given, *, train: Train = fit_model, workers: Workers = ALONE, checkpoints: Checkpoints | None = None
) -> Learned:
    """Learn from a table in memory or from a scan of files; only a scan can be shared with other workers."""
    parameters = given.parameters
    run = Run(parameters.n_jobs, read_callbacks(parameters.callbacks), bool(parameters.verbose), workers, checkpoints)
    if not isinstance(given.X, Scan):
        with one_blas_thread():
            prepared = prepare_table(given)
        return _learn(given, prepared, run, train)
    from nae.estimators.streaming import WithSchema, prepare_scan

    schema = None if checkpoints is None else WithSchema.schema_in(checkpoints)
    with prepare_scan(given, workers, schema=schema) as prepared:
        if checkpoints is not None:
            run = replace(run, checkpoints=WithSchema(checkpoints, prepared.schema))
        return _learn(given, prepared, run, train)


def _learn(given: Given, prepared: Prepared, run: Run, train: Train) -> Learned:
    """Train on prepared rows, and make of the tables the model that is kept."""
    task, parameters = prepared.task, given.parameters
    fitted, path, smoothness = _train(prepared, run, train, parameters)
    with one_blas_thread(), working_threads(read_threads(run.n_jobs)):

        def balanced(model: TableModel) -> TableModel:
            return balance(
                model, prepared.sources, task.loss, task.scale, class_weight=task.class_weight, workers=run.workers
            )

        fitted = calibrated(replace(fitted, model=balanced(fitted.model)), prepared, balanced, workers=run.workers)
        summarised = replace(fitted.model, training=_summarise(given, prepared, fitted))
        doubtful = remember_held_out(summarised, fitted, prepared, workers=run.workers)
        model = remember_evidence(doubtful, prepared)
    return Learned(
        model.for_class(task.positive) if task.positive else model,
        fitted.history,
        fitted.state if parameters.warm_start else None,
        fitted.table_error,
        prepared.origin.expected,
        task.labels,
        path,
        smoothness,
    )


class _Trained(NamedTuple):
    """A fit, and what a search left behind."""

    fitted: Fitted
    path: tuple[PathPoint, ...] | None = None
    smoothness: float | None = None


_SEARCHES: dict[str, Callable[[Prepared, Run, Train], _Trained]] = {
    "additivity": lambda *given: _Trained(*fit_path(*given)),
    "smoothness": lambda *given: _Trained(*fit_smoothest(*given)),
}
"""What a parameter whose value is 'auto' does."""


def _train(prepared: Prepared, run: Run, train: Train, parameters: Parameters) -> _Trained:
    """Train once, or as a parameter that is 'auto' asks for; with smaller batches where these do not fit."""
    searched = [name for name in _SEARCHES if isinstance(getattr(parameters, name), str)]
    if len(searched) > 1:
        raise ConfigError("additivity and smoothness cannot both be 'auto': each is a search. Give one as a number.")
    n_members = prepared.settings.network.n_members
    if searched and prepared.validation is None and prepared.source.held_out(n_members) is None:
        raise DataError(
            f"{searched[0]}='auto' needs rows to validate on; got {len(prepared.source)}, which are all used for "
            f"training. Pass eval_set, or a number as {searched[0]}."
        )

    def attempt(smaller: Prepared) -> _Trained:
        return _SEARCHES[searched[0]](smaller, run, train) if searched else _Trained(train(smaller, run))

    if run.workers.count > 1:  # they would have to agree on a smaller batch: they fail together instead
        return attempt(prepared)
    config, n_rows = prepared.settings.training, len(prepared.source)
    return halve_batch_until_it_fits(lambda one: attempt(prepared.with_training(one)), config, n_rows=n_rows)


def _finite(loss: float | None) -> float | None:
    """Return a loss that a file can hold; with a log link and giant offsets it is infinite."""
    return loss if loss is not None and math.isfinite(loss) else None


def _summarise(given: Given, prepared: Prepared, fitted: Fitted) -> TrainingSummary:
    """Return what the model remembers of its training."""
    origin, history, asked = prepared.origin, fitted.history, given.parameters.additivity
    return replace(
        prepared.task.summary,
        constraints=_promises(prepared),
        estimator=given.owner,
        n_epochs=len(history),
        best_epoch=history.best_epoch,
        stopped=history.stopped,
        validation_loss=_finite(history.best_validation),
        table_error=fitted.table_error,
        device=prepared.place.device,
        engine=prepared.place.engine,
        target=", ".join(origin.target_names) or None,
        offset=origin.offset_names,
        baseline=None if origin.baseline is None else origin.baseline.to_entry(),
        n_rows=origin.n_rows,
        n_validation_rows=origin.n_validation_rows,
        data_sha256=origin.data_sha256,
        n_bad_rows=origin.n_bad_rows,
        n_unknown_rows=origin.n_unknown_rows,
        intercept_shift=fitted.model.training.intercept_shift,
        calibration=fitted.model.training.calibration,
        additivity=_check_dial(fitted.model, asked) if isinstance(asked, float) else None,
    )


def _promises(prepared: Prepared) -> dict[str, Any] | None:
    """Return what the fit promises about the score that training learns."""
    asked = prepared.constraints
    promises = {} if asked is None else asked.promises(prepared.schema.names)
    if prepared.task.loss.levels:
        promises["ordered"] = True
    return (mirrored_promises(promises) if prepared.task.is_mirrored else promises) or None


def _check_dial(model: TableModel, asked: float) -> AdditivityEntry | None:
    """Return how additive a model is, beside what was asked for, and warn if that is more; None without a dial."""
    if model.n_experts == 1:
        return None
    measured = model.explain_global().additivity
    if measured < asked - _MISSED:
        warn(
            f"additivity={asked:g} was asked for and {measured:.3f} reached: the penalty needs more "
            "steps or the interactions are too strong. Raise max_epochs, or accept what was measured."
        )
    return {"asked": asked, "measured": measured}
