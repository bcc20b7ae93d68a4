"""Several quantiles of one model against a model for each: pinball loss, coverage, width, and rows where they cross."""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, Split, dataset_named, load
from benchmarks.machine import describe
from benchmarks.models.boosting import LEARNING_RATE, PATIENCE, category_names
from benchmarks.run import own_version
from benchmarks.tables import four_digits, markdown_table
from nae.quality.formulas import pinball_loss

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MODELS", "Outcome", "add_command", "draw_rows", "measure", "render"]

NAME = "quantiles"
LEVELS = (0.05, 0.5, 0.95)
TABLES = "concrete,housing,bike_hour"
N_DRAWN = 200_000
_TREES = 3000
_HOW = """\
Quantiles 5 %, 50 % and 95 %, means over {n} splits. *One model* is
`NAERegressor("quantile", quantile=[0.05, 0.5, 0.95])`, *a model for each* three estimators with one quantile each, and
LightGBM three models that stop by the validation rows; all with their defaults. The pinball loss is the mean over the
quantiles, ± the standard error over the test rows of its difference to *a model for each*. Coverage is the share of
test rows from the 5 % to the 95 % quantile, which should be 0.90. Quantiles cross in a share of the test rows, and in a
share of {drawn:,} drawn rows, whose columns are drawn apart from each other: values of the table, missing ones, far
ones, and levels that no row has."""

Array = NDArray[np.float64]
Predict = Callable[["pd.DataFrame"], Array]


@dataclass(frozen=True)
class Outcome:
    """What was measured of a model on one split."""

    pinball: float
    error: float
    """The standard error of the difference of the loss to that of the reference."""
    coverage: float
    width: float
    crossing: float
    """The share of the test rows in which two quantiles cross."""
    crossing_drawn: float
    """The share of the drawn rows in which two quantiles cross."""
    seconds: float


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help=__doc__, description=__doc__)
    parser.add_argument("--tables", default=TABLES, help="comma-separated names of tables of numbers")
    parser.add_argument("--splits", type=int, default=3, help="of the rows of every table")
    parser.add_argument("--threads", type=int, default=2, help="threads of every fit")
    parser.add_argument(
        "--store", type=Path, default=Path("runs/quantiles.jsonl"), help="file of results; splits in it are not fitted"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/quantiles.md"), help="the page to write")
    parser.set_defaults(run=run_quantiles)


def run_quantiles(given: argparse.Namespace) -> None:
    """Fit all models on the splits that are not stored, and write the page after each table."""
    found: dict[str, dict[str, list[Outcome]]] = {}
    for dataset in (dataset_named(name) for name in given.tables.split(",")):
        own = found.setdefault(dataset.label, {name: [] for name in MODELS})
        for seed in range(given.splits):
            for name, outcome in _measure_once(dataset, seed, given.threads, given.store).items():
                own[name].append(outcome)
                print(f"{dataset.label}, split {seed}, {name}: {outcome}", flush=True)
        given.out.write_text(render(found, n_splits=given.splits))
    print(f"wrote {given.out}")


def _measure_once(dataset: Dataset, seed: int, threads: int, store: Path) -> dict[str, Outcome]:
    """Return the outcomes on a split from a file of JSON lines, or measure them and add a line."""
    key = {"table": dataset.name, "split": seed, "version": own_version()}
    for line in store.read_text().splitlines() if store.exists() else ():
        stored = json.loads(line)
        if stored["key"] == key:
            return {name: Outcome(**numbers) for name, numbers in stored["outcomes"].items()}
    found = measure(dataset, seed=seed, threads=threads)
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("a") as file:
        file.write(json.dumps({"key": key, "outcomes": {name: asdict(one) for name, one in found.items()}}) + "\n")
    return found


def measure(dataset: Dataset, *, seed: int, threads: int, n_drawn: int = N_DRAWN, **params: Any) -> dict[str, Outcome]:
    """Return the outcomes of all models on a split; ``params`` are further parameters of our estimators."""
    rows = load(dataset, seed=seed)
    drawn = draw_rows(rows.all_train.X, n_drawn, np.random.default_rng(seed))
    made: dict[str, tuple[Predict, float]] = {}
    for name, fit in MODELS.items():
        started = time.perf_counter()
        made[name] = fit(rows, seed, threads, params), time.perf_counter() - started
    losses = {name: _losses(rows.test.y, predict(rows.test.X)) for name, (predict, _) in made.items()}
    return {
        name: _judge(rows, drawn, predict, losses[name] - losses[REFERENCE], seconds=seconds)
        for name, (predict, seconds) in made.items()
    }


def draw_rows(X: "pd.DataFrame", n_rows: int, random: np.random.Generator) -> "pd.DataFrame":
    """Return rows whose columns are drawn apart from each other; some values are missing, far away, or unseen."""
    import pandas as pd

    drawn = {}
    for name in X.columns:
        own = X[name].take(random.integers(len(X), size=n_rows)).reset_index(drop=True)
        kind = random.random(n_rows)
        if own.dtype.kind in "iuf":
            far = own.mean() + 10 * own.std() * random.standard_normal(n_rows)
            own = own.astype(float).where(kind < 0.8, far)
        elif own.dtype.kind != "b":
            own = own.astype(object).where(kind < 0.8, "a level that no row has")
        drawn[name] = own if own.dtype.kind == "b" else own.where(kind < 0.9, None)
    return pd.DataFrame(drawn)


def _losses(truth: Array, predicted: Array) -> Array:
    """Return the pinball loss of every row, averaged over the quantiles."""
    each = [pinball_loss(truth, own, level) for own, level in zip(predicted.T, LEVELS, strict=True)]
    return np.asarray(np.mean(each, axis=0))


def _judge(rows: Split, drawn: "pd.DataFrame", predict: Predict, apart: Array, *, seconds: float) -> Outcome:
    truth, predicted = rows.test.y, predict(rows.test.X)
    is_inside = (truth >= predicted[:, 0]) & (truth <= predicted[:, -1])
    return Outcome(
        pinball=float(_losses(truth, predicted).mean()),
        error=float(apart.std() / np.sqrt(len(apart))),
        coverage=float(is_inside.mean()),
        width=float((predicted[:, -1] - predicted[:, 0]).mean()),
        crossing=_crossing(predicted),
        crossing_drawn=_crossing(predict(drawn)),
        seconds=seconds,
    )


def _crossing(predicted: Array) -> float:
    """Return the share of the rows in which a quantile is below the one before it."""
    return float((np.diff(predicted, axis=1) < 0).any(axis=1).mean())


def _fit_one(rows: Split, seed: int, threads: int, params: Mapping[str, Any]) -> Predict:
    from nae import NAERegressor

    model = NAERegressor("quantile", quantile=LEVELS, random_state=seed, n_jobs=threads, **params)
    return model.fit(rows.all_train.X, rows.all_train.y).predict


def _fit_each(rows: Split, seed: int, threads: int, params: Mapping[str, Any]) -> Predict:
    from nae import NAERegressor

    models = [NAERegressor("quantile", quantile=q, random_state=seed, n_jobs=threads, **params) for q in LEVELS]
    for model in models:
        model.fit(rows.all_train.X, rows.all_train.y)
    return lambda X: np.stack([model.predict(X) for model in models], axis=1)


def _fit_lightgbm(rows: Split, seed: int, threads: int, params: Mapping[str, Any]) -> Predict:
    import lightgbm
    import pandas as pd

    names = category_names(rows.train.X)
    levels = {name: sorted(rows.train.X[name].dropna().unique()) for name in names}

    def prepare(X: "pd.DataFrame") -> "pd.DataFrame":
        kept = {name: pd.Categorical(X[name], categories=own) for name, own in levels.items()}
        table = X.assign(**kept).astype({name: float for name in X.columns if name not in levels})
        return table.set_axis([f"x{i}" for i in range(table.shape[1])], axis=1)  # LightGBM refuses brackets

    models = []
    for level in LEVELS:
        model = lightgbm.LGBMRegressor(
            objective="quantile",
            alpha=level,
            learning_rate=LEARNING_RATE,
            n_estimators=_TREES,
            n_jobs=threads,
            random_state=seed,
            verbose=-1,
        )
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        judged = {"eval_X": prepare(rows.validation.X), "eval_y": rows.validation.y}
        models.append(model.fit(prepare(rows.train.X), rows.train.y, **judged, callbacks=[stop]))
    return lambda X: np.stack([model.predict(prepare(X)) for model in models], axis=1)


REFERENCE = "a model for each"
MODELS: dict[str, Callable[[Split, int, int, Mapping[str, Any]], Predict]] = {
    "one model": _fit_one,
    REFERENCE: _fit_each,
    "LightGBM": _fit_lightgbm,
}


def render(found: Mapping[str, Mapping[str, Sequence[Outcome]]], *, n_splits: int) -> str:
    """Return the page."""
    header = ["", "model", "pinball loss", "coverage", "width", "crossing, test rows", "drawn rows", "seconds"]
    lines = []
    for label, by_model in found.items():
        for name, outcomes in by_model.items():
            mean = {one.name: float(np.mean([getattr(each, one.name) for each in outcomes])) for one in fields(Outcome)}
            error = "" if name == REFERENCE else f" ± {four_digits(mean['error'] / np.sqrt(len(outcomes)))}"
            crossing = [f"{100 * mean[one]:.2f} %" if mean[one] else "0" for one in ("crossing", "crossing_drawn")]
            lines.append(
                [
                    label,
                    name,
                    f"{four_digits(mean['pinball'])}{error}",
                    f"{mean['coverage']:.3f}",
                    four_digits(mean["width"]),
                    *crossing,
                    f"{mean['seconds']:.0f}",
                ]
            )
    about = f"Made by `python -m benchmarks guarantees quantiles` on {describe()}.\n\n"
    how = _HOW.format(n=n_splits, drawn=N_DRAWN)
    return f"# Several quantiles\n\n{about}{how}\n\n{markdown_table(header, lines)}\n"
