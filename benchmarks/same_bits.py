"""Check whether another commit fits the same models, bit for bit: ``python -m benchmarks.same_bits COMMIT``.

A restructuring must not change what is learned. The code of this checkout and the code of ``COMMIT`` fit small tables
of every kind, on this machine with one thread. Contributions, bounds and validation losses must be equal. No
fingerprints are stored, because bits differ between kinds of processors.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Case:
    """A table, and the estimator that fits it."""

    kind: str
    n_rows: int = 400
    n_features: int = 4
    params: dict[str, Any] = field(default_factory=dict)


CASES = {
    "numbers, 40 rows": Case("number", 40),
    "numbers, 400 rows": Case("number"),
    "numbers, 1,500 rows": Case("number", 1500),
    "numbers, 60 features": Case("number", 1100, 60),
    "categories and missing values": Case("mixed", 1200),
    "two outputs": Case("outputs"),
    "two classes": Case("two", 1100),
    "three classes, balanced": Case("three", 1100, params={"class_weight": "balanced"}),
    "weights": Case("weights", 1100),
    "counts with an offset": Case("count", 1100, params={"loss": "poisson"}),
    "quantile": Case("number", 1100, params={"loss": "quantile", "quantile": 0.8}),
    "additivity=0.9": Case("number", 1100, params={"additivity": 0.9}),
    "additivity=1": Case("number", 1100, params={"additivity": 1.0}),
    "additivity='auto'": Case("number", 1100, params={"additivity": "auto"}),
    "nae-e": Case("number", 1100, params={"variant": "nae-e"}),
    "nae-d": Case("number", 1100, params={"variant": "nae-d", "n_experts": 8}),
    "deep gate": Case("two", 1100, params={"gate": "deep"}),
    "low-rank gate": Case("number", 1100, params={"gate": "low-rank"}),
    "the paper's encoder": Case("number", 600, params={"encoder": "mlp", "max_epochs": 3, "n_knots": 64}),
    "the paper's encoder, classes": Case("two", 200, params={"encoder": "mlp", "max_epochs": 3, "n_knots": 64}),
    "given validation rows": Case("validated", 1100),
    "one member": Case("number", 1100, params={"n_members": 1}),
    "a second fit, warm": Case("warm", 1100),
    "a scan": Case("scan", 1500),
    "the end of the schedule": Case("number", 300, params={"max_epochs": 400, "n_members": 2}),
}


def main() -> None:
    """Compare two commits, or print the fingerprints of one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("commit", nargs="?", help="the commit to compare with")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    given = parser.parse_args()
    names = [name for name in CASES if given.only in name]
    if given.commit is None:
        print(json.dumps({name: fingerprint(CASES[name]) for name in names}))
        return
    here = _fingerprints(ROOT, given.only)
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), given.commit], cwd=ROOT, check=True)
        try:
            _build_core(tree)
            there = _fingerprints(tree, given.only)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    for name in names:
        print(f"{'same' if here[name] == there[name] else 'DIFFERENT':<10} {name}")
    if here != there:
        raise SystemExit(1)


def _build_core(tree: Path) -> None:
    """Build the native core of a checkout, as this one's is: without it, torch would train there."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    subprocess.run([sys.executable, "-m", "nae.native.build"], env=environment, stdout=sys.stderr, check=False)


def _fingerprints(tree: Path, only: str) -> dict[str, str]:
    """Return the fingerprints of all cases, fitted by the code of a checkout. The cases are those of this file."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), "--only", only], env=environment, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def fingerprint(case: Case) -> str:
    """Fit a case and return a hash of everything that was learned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator, X = _FITS[case.kind](case)
    found = estimator.contributions(X)
    losses = [epoch.validation for epoch in estimator.history_.epochs]
    parts = [found.values, found.lower, found.upper, found.intercept, np.array(losses, dtype=np.float64)]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def _table(case: Case) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(case.n_rows + case.n_features)
    X = pd.DataFrame(random.normal(size=(case.n_rows, case.n_features)))
    X.columns = [f"x{i}" for i in range(case.n_features)]
    y = X["x0"] * np.sign(X["x1"]) + np.sin(2 * X["x2"]) + 0.3 * random.normal(size=case.n_rows)
    return X, y.to_numpy()


def _estimator(case: Case, *, is_classes: bool = False, **params: Any) -> Any:
    from nae import NAEClassifier, NAERegressor

    known = {"random_state": 0, "n_jobs": 1, "max_epochs": 12, "device": "cpu"}
    return (NAEClassifier if is_classes else NAERegressor)(**(known | case.params | params))


def _fit_numbers(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    return _estimator(case).fit(X, y), X


def _fit_mixed(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    X["x1"] = np.where(X["x1"] > 1, "a", np.where(X["x1"] > 0, "b", "c"))
    X.loc[::7, "x2"] = np.nan
    X["constant"] = 3.0
    return _estimator(case).fit(X, y), X


def _fit_outputs(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    return _estimator(case).fit(X, np.column_stack([y, y**2])), X


def _fit_two(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    return _estimator(case, is_classes=True).fit(X, np.where(y > 0, "yes", "no")), X


def _fit_three(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    return _estimator(case, is_classes=True).fit(X, np.digitize(y, [-1, 1])), X


def _fit_weights(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    return _estimator(case).fit(X, y, sample_weight=1.0 + np.arange(len(y)) % 3), X


def _fit_counts(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    offset = 0.1 * np.arange(len(y)) / len(y)
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * y + offset))
    return _estimator(case).fit(X, counts, offset=offset), X


def _fit_validated(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    return _estimator(case).fit(X[200:], y[200:], eval_set=(X[:200], y[:200])), X


def _fit_warm(case: Case) -> tuple[Any, pd.DataFrame]:
    X, y = _table(case)
    estimator = _estimator(case, warm_start=True).fit(X, y)
    return estimator.fit(X, y + X["x3"]), X


def _fit_scan(case: Case) -> tuple[Any, pd.DataFrame]:
    import nae

    X, y = _table(case)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rows.parquet"
        X.assign(target=y).to_parquet(path)
        return _estimator(case).fit(nae.scan(str(path)), y="target"), X


_FITS: dict[str, Callable[[Case], tuple[Any, pd.DataFrame]]] = {
    "number": _fit_numbers,
    "mixed": _fit_mixed,
    "outputs": _fit_outputs,
    "two": _fit_two,
    "three": _fit_three,
    "weights": _fit_weights,
    "count": _fit_counts,
    "validated": _fit_validated,
    "warm": _fit_warm,
    "scan": _fit_scan,
}


if __name__ == "__main__":
    main()
