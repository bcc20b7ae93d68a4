"""Unusual tables, fitted by every estimator and loss with networks so small that a fit takes milliseconds."""

from collections.abc import Callable
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.laws import check_laws, check_saved, odd_rows
from benchmarks.fuzz.targets import Attempt, Violation, draw, shown
from nae import NAEClassifier, NAERegressor
from nae.errors import NAEError
from nae.tables import load

__all__ = ["prepare"]

_TINY: dict[str, Any] = {"n_members": 1, "n_experts": 2, "hidden_dim": 4, "max_epochs": 2, "n_knots": 6, "n_ramps": 4}
_TINY |= {"device": "cpu", "n_jobs": 1}
_LOSSES = ("squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie")
# The parameters that vary besides the data.
_SETTINGS: tuple[dict[str, Any], ...] = (
    *({}, {}, {"n_members": 2}, {"gate": "low-rank", "gate_rank": 2}, {"gate": "deep", "gate_rank": 2}),
    *({"variant": "nae-e"}, {"variant": "nae-d"}, {"encoder": "mlp"}, {"additivity": 1.0}, {"additivity": 0.5}),
    *({"n_active": 1}, {"n_experts": 1}, {"expert_dropout": 0.5}, {"learning_rate": 1.0}, {"n_knots": 2}),
)
_ODD_NUMBERS = (0.0, -0.0, 1.0, np.nan, 1e300, -1e300, 1e-300, 5e-324, 2.0**53, 1e38, -1e38, 1e-46, np.inf, -np.inf)
_TEXTS = ("a", "b", "", " ", "nan", "None", "1", "ü", "\U0001f600", "\ud800", "\0", "missing", "other", "x" * 300, "=1")
_LARGEST = 1e300


def prepare(folder: Path, _: ExitStack) -> Attempt:
    """Return the attempt: a table, a target and an estimator of any kind."""
    path = folder / "m.nae"

    def attempt(random: np.random.Generator) -> str:
        table, n_rows = _table(random)
        is_classes = bool(random.integers(3) == 0)
        settings = _TINY | draw(_SETTINGS, random) | {"random_state": int(random.integers(100))}
        if is_classes:
            estimator: Any = NAEClassifier(**settings | draw(({}, {"class_weight": "balanced"}), random))
            y = _labels(random, n_rows)
        else:
            loss = draw(_LOSSES, random)
            estimator, y = NAERegressor(loss, **settings), _targets(random, n_rows, is_positive=loss in _LOSSES[4:])
        beside = _beside(random, n_rows)
        with shown(_described(estimator, table, y, beside), ending="txt"):
            try:
                estimator.fit(table, y, **beside)
            except (NAEError, ValueError) as error:
                return _check_refusal(error)
            if "sample_weight" in beside:  # rows without weight may hold anything, because no fit sees them
                table = _taken(table, beside["sample_weight"] > 0)
            return _check_fitted(estimator, table, random, path if random.integers(8) == 0 else None)

    return attempt


def _check_refusal(error: Exception) -> str:
    text = str(error)
    if not isinstance(error, NAEError):
        raise error
    if not text.strip() or len(text) > 3000:
        raise Violation(f"the complaint is no sentence: {text[:200]!r}") from error
    return "refused"


def _check_fitted(estimator: Any, table: Any, random: np.random.Generator, path: Path | None) -> str:
    model = estimator.model_
    check_laws(model, odd_rows(model, random))
    check_saved(model)
    predicted = np.asarray(estimator.predict(table))
    if predicted.dtype.kind == "f" and np.isnan(predicted).any():
        raise Violation("a training row is predicted as NaN")
    model.explain_global()
    if path is not None:
        estimator.save(path)
        again = type(estimator).load(path)
        if not np.array_equal(np.asarray(again.predict(table)), predicted) or load(path).classes != model.classes:
            raise Violation("the estimator predicts something else after saving")
    return "fitted, classes" if model.classes else "fitted, numbers"


def _table(random: np.random.Generator) -> tuple[Any, int]:
    """Return a table of one to seven columns of any kind, in one of many containers, and its number of rows."""
    n_rows = int(draw((1, 2, 3, 5, 12, 12, 20, 20, 30, 40), random))
    n_columns = int(random.integers(1, 8))
    columns = {
        _name(random, i): draw(_COLUMNS if random.integers(40) else _REFUSED, random)(random, n_rows)
        for i in range(n_columns)
    }
    kind = random.integers(6)
    if kind == 0:
        return columns, n_rows
    if kind == 1:
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], n_rows
    if kind == 2:
        numbers = [_numbers(random, n_rows) for _ in columns]
        return np.stack(numbers, axis=1), n_rows
    if kind == 3:
        return np.array([list(row) for row in zip(*columns.values(), strict=True)], dtype=object), n_rows
    return _frame(columns, is_polars=kind == 4), n_rows


def _frame(columns: dict[str, Any], *, is_polars: bool) -> Any:
    try:
        if is_polars:
            import polars as pl

            return pl.DataFrame(columns, strict=False)
        import pandas as pd

        return pd.DataFrame(columns)
    except Exception:  # a mapping takes the values that the package cannot hold
        return columns


def _taken(table: Any, rows: np.ndarray) -> Any:
    """Return some rows of a table of any kind."""
    if isinstance(table, dict):
        return {name: np.asarray(column)[rows] for name, column in table.items()}
    if isinstance(table, list):
        return [row for row, is_taken in zip(table, rows, strict=True) if is_taken]
    return table.filter(rows) if type(table).__module__.startswith("polars") else table[rows]


def _name(random: np.random.Generator, i: int) -> str:
    odd = ("", " ", "x", "ü", "a\0b", "\ud800", "__proto__", "f 0", "x" * 500)
    return f"{draw(odd, random)}{i}" if random.integers(4) else f"f{i}"


_POWERS = (*(0,) * 8, 3, -3, 15, -15, 37, -40, 90, -90, 150, -300, 300)


def _scale(random: np.random.Generator) -> float:
    return float(10.0 ** draw(_POWERS, random))


def _numbers(random: np.random.Generator, n_rows: int) -> np.ndarray:
    values = random.standard_normal(n_rows) * _scale(random)
    if random.integers(3) == 0:
        values += _scale(random)
    if random.integers(3) == 0:
        values[random.random(n_rows) < 0.3] = np.nan
    if random.integers(60) == 0:
        values[random.integers(n_rows)] = draw(_ODD_NUMBERS, random)
    return values


def _mixed(random: np.random.Generator, n_rows: int) -> np.ndarray:
    options = (
        None,
        1,
        True,
        "a",
        1.5,
        Decimal("0.1"),
        2**60 + 1,
        10**400,
        b"x",
        (1,),
        np.float32(0.1),
        Decimal("sNaN"),
    )
    return _of([draw(options, random) for _ in range(n_rows)])


def _of(values: list[Any]) -> np.ndarray:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


Column = Callable[[np.random.Generator, int], Any]
_COLUMNS: tuple[Column, ...] = (
    *(_numbers, _numbers, _numbers),
    lambda random, n: random.integers(0, draw((1, 2, 3, 100), random), n),
    lambda random, n: random.integers(-(2**62), 2**62, n),
    lambda random, n: _of([int(value) + 2**63 for value in random.integers(0, 2**62, n)]),
    lambda random, n: random.integers(0, 2, n).astype(bool),
    lambda random, n: _of([draw((True, False, None), random) for _ in range(n)]),
    lambda random, n: _of([draw(_TEXTS, random) for _ in range(n)]),
    lambda random, n: _of([draw((*_TEXTS[:3], None), random) for _ in range(n)]),
    lambda random, n: _of([f"level {i}" for i in range(n)]),
    lambda random, n: _of([Decimal(int(value)) / 8 for value in random.integers(-99, 99, n)]),
    lambda random, n: random.standard_normal(n).astype(np.float32),
    lambda random, n: _of([None] * n),
)
_REFUSED: tuple[Column, ...] = (  # most of the time
    lambda random, n: random.integers(0, 10**18, n).astype("datetime64[ns]"),
    lambda random, n: np.full(n, draw(_ODD_NUMBERS, random)),
    _mixed,
)


def _targets(random: np.random.Generator, n_rows: int, *, is_positive: bool) -> Any:
    shape = (n_rows, 2) if random.integers(8) == 0 else (n_rows,)
    y = random.standard_normal(shape) * _scale(random) + draw((0.0, 0.0, 1.0, 1e14), random)
    if is_positive and random.integers(8):
        y = np.abs(y) if random.integers(2) else np.floor(np.minimum(np.abs(y), 1e6))
    if random.integers(24) == 0:
        y.flat[random.integers(y.size)] = draw(_ODD_NUMBERS, random)
    if random.integers(16) == 0:
        y = np.full(shape, draw(_ODD_NUMBERS, random))
    if random.integers(16) == 0 and y.ndim == 1:
        return draw((_of(y.tolist()), y.tolist(), y.astype(np.float32), np.nan_to_num(y, posinf=9, neginf=9)), random)
    return y


_LABELS: tuple[Any, ...] = (
    *(_TEXTS, _TEXTS[:2], range(99), (True, False), (0.5, -1e300, 2.0)),
    *((2**60, 2**60 + 1, -1), ("1", 1, 1.0), (None, "a"), (b"a", b"b")),
)


def _labels(random: np.random.Generator, n_rows: int) -> Any:
    n_classes = int(draw((1, 2, 2, 2, 3, 4, n_rows), random))
    options = draw(_LABELS, random)
    labels = [options[i % len(options)] for i in random.integers(0, n_classes, n_rows)]
    return _of(labels) if random.integers(2) else np.array(labels)


def _beside(random: np.random.Generator, n_rows: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if random.integers(3) == 0:
        weight = random.random(n_rows) * _scale(random) + draw((0.0, 1.0), random)
        weight[random.random(n_rows) < draw((0.0, 0.3, 1.0), random)] = 0.0
        if random.integers(8) == 0:
            weight[random.integers(n_rows)] = draw(_ODD_NUMBERS, random)
        found["sample_weight"] = weight
    if random.integers(6) == 0:
        found["offset"] = random.standard_normal(n_rows) * min(_scale(random), _LARGEST)
    return found


def _described(estimator: Any, table: Any, y: Any, beside: dict[str, Any]) -> bytes:
    with np.printoptions(threshold=10_000):
        shown_table = table if isinstance(table, dict | list | np.ndarray) else table.to_dict()
        return f"{estimator!r}\n{shown_table!r}\n{y!r}\n{beside!r}\n".encode("utf-8", "backslashreplace")
