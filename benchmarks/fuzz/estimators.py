"""Forged files of estimators, which hold parameters, classes and history besides the model."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.files import forge
from benchmarks.fuzz.laws import odd_rows
from benchmarks.fuzz.targets import Attempt, Violation, draw, shown
from nae import NAEClassifier, NAERegressor
from nae.errors import NAEError

__all__ = ["prepare"]

_TINY: dict[str, Any] = {"n_members": 1, "n_experts": 2, "hidden_dim": 4, "max_epochs": 2, "n_knots": 4, "n_ramps": 4}
_TINY |= {"device": "cpu", "n_jobs": 1}


def prepare(folder: Path, _: ExitStack) -> Attempt:
    """Return the attempt: forge the file of one of a few fitted estimators, and load it."""
    path = folder / "m.nae"
    contents = []
    for estimator in _fitted():
        estimator.save(path)
        contents.append((type(estimator), path.read_bytes()))

    def attempt(random: np.random.Generator) -> str:
        (kind, content), (_, other) = draw(contents, random), draw(contents, random)
        content = forge(content, other, random)
        path.write_bytes(content)
        with shown(content, ending="nae"):
            try:
                estimator = kind.load(path)
            except NAEError:
                return "refused"
            return _check(estimator, random)

    return attempt


def _check(estimator: Any, random: np.random.Generator) -> str:
    rows = odd_rows(estimator.model_, random)
    predicted = np.asarray(estimator.predict(rows))
    if predicted.dtype.kind == "f" and np.isnan(predicted).any():
        raise Violation("a loaded estimator predicts NaN")
    repr(estimator)
    estimator.get_params()
    len(estimator.history_)
    return "loaded"


def _fitted() -> list[Any]:
    random = np.random.default_rng(0)
    X = {"size": random.standard_normal(20), "kind": random.choice(["oak", "pine"], 20).tolist()}
    y = random.standard_normal(20)
    labels = np.array(["no", "yes"])[(y > 0).astype(int)]
    found: list[Any] = [NAERegressor(**_TINY).fit(X, y), NAERegressor("poisson", additivity=0.5, **_TINY).fit(X, y**2)]
    found += [NAEClassifier(**_TINY).fit(X, values) for values in (labels, np.digitize(y, [-0.5, 0.5]), y > 0)]
    return [*found, NAEClassifier(class_weight="balanced", **_TINY).fit(X, labels)]
