"""All experiments in the order of the paper, and the order of their runs by importance."""

from collections.abc import Iterable, Sequence

from benchmarks.models import entry_named
from benchmarks.paper import (
    accuracy,
    costs,
    differences,
    housing,
    interactions,
    scaling,
    search,
    simulations,
    sizes,
    theory,
)
from benchmarks.paper.experiment import Experiment
from benchmarks.paper.runs import PAPER, TABLE, Run, Value, is_ours
from benchmarks.paper.tables import SIMULATIONS
from nae.errors import ConfigError, did_you_mean

__all__ = ["EXPERIMENTS", "chosen", "laptop_runs", "ordered", "seconds_of", "smoke_runs"]

_ORDER = (
    "accuracy", "unimodal", "multimodal", "sim-lambda", "longitude", "lambda", "theory", "datasets", "search",
    "sparsity", "modality", "correlation", "generic", "ga2m", "three-way", "nae-d", "nae-e", "experts", "k-lambda",
    "parameters", "cost", "all-features", "differences",
)  # fmt: skip
LAPTOP_SECONDS = 20.0
"""Runs that take a GPU less time than this also run on a laptop."""
_GROUPS = (accuracy, simulations, interactions, housing, scaling, sizes, costs, search, theory, differences)
_FOUND = {experiment.name: experiment for group in _GROUPS for experiment in group.EXPERIMENTS}
EXPERIMENTS: tuple[Experiment, ...] = tuple(_FOUND[name] for name in _ORDER)


def chosen(names: Sequence[str]) -> tuple[Experiment, ...]:
    """Return the experiments with the given names; 'all' returns all."""
    if "all" in names:
        return EXPERIMENTS
    unknown = [name for name in names if name not in _FOUND]
    if unknown:
        raise ConfigError(
            f"An experiment must be one of {list(_ORDER)}; got {unknown[0]!r}.{did_you_mean(unknown[0], _ORDER)}"
        )
    return tuple(_FOUND[name] for name in names)


def ordered(experiments: Iterable[Experiment]) -> list[Run]:
    """Return the distinct runs: first repetitions of our models first, cheap runs before expensive ones."""
    runs = dict.fromkeys(run for experiment in experiments for run in experiment.runs())
    return sorted(runs, key=lambda run: (run.is_timed, _rank(run), seconds_of(run), run.path))


def laptop_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that take minutes without a GPU, and that are not timed."""
    return [run for run in runs if seconds_of(run) <= LAPTOP_SECONDS and not run.is_timed]


def smoke_runs(experiments: Iterable[Experiment]) -> list[Run]:
    """Return small versions of first repetitions, with few of the peers."""
    runs = [run for run in ordered(experiments) if run.is_first and (is_ours(run) or _is_smoked(run))]
    return [run.smoke() for run in runs]


def _is_smoked(run: Run) -> bool:
    """Whether a peer is part of smoke runs. EBM takes seconds even with few rows, so it runs only where it is drawn."""
    return run.model in ("linear", "nam", TABLE) or (run.model == "ebm-additive" and run.data == "housing")


def seconds_of(run: Run) -> float:
    """Return the approximate time of a run on a shared GPU."""
    if run.model == TABLE:
        return 1.0
    if run.is_timed:
        return float(dict(run.options)["n_features"] or 1) / 10
    if run.data in SIMULATIONS:
        return 20.0 if run.model == PAPER else 15.0
    share = {"income": 1.6, "credit_sample5412": 0.4, "mimic2": 1.2, "mimic3": 2.0, "credit": 12.0, "year": 40.0}
    size = share.get(run.data, 1.0)
    if run.model == PAPER:
        return 60.0 * size * _work(dict(run.settings))
    if not is_ours(run):
        return size * {"linear": 3.0, "spline": 5.0, "lightgbm": 20.0, "xgboost": 25.0}.get(run.model, 60.0)
    return 30.0 * size


def _work(chosen: dict[str, Value]) -> float:
    """Return the cost of training relative to the paper's settings of Housing."""
    epochs, width, n_blocks = (
        float(chosen.get(name) or usual) for name, usual in (("max_epochs", 1000), ("hidden_dim", 128), ("n_blocks", 4))
    )
    return epochs / 1000 * width / 128 * n_blocks / 4


def _rank(run: Run) -> int:
    """Return the priority of a run: first repetitions of everything come first, and the search comes last."""
    if "learning_rate" in dict(run.settings):
        return 5
    if run.model == TABLE:
        return 0
    if is_ours(run):
        return (0 if run.model == PAPER else 1) if run.is_first else 2
    is_dear = entry_named(run.model).name in ("ebm", "node", "node-ga2m", "nb2m", "catboost")
    return 1 + is_dear if run.is_first else 3 + is_dear
