"""Read the arguments of fit besides the table: names, evaluation sets, callbacks, and which rows are held out."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, IntArray
from nae._warnings import warn
from nae.encoding import Category, Columns, Feature, read_table
from nae.encoding.target import to_array
from nae.errors import ConfigError, DataError

__all__ = [
    "Expected",
    "check_lengths",
    "content_folds",
    "held_out_rows",
    "random_folds",
    "random_rows",
    "read_callbacks",
    "read_columns",
    "read_eval_set",
    "warn_of_names",
    "warn_of_rounding",
]

_FEW_LEVELS = 20  # a column with at most this many levels is never taken for an identifier
_IDENTIFIER = 0.5  # a column looks like an identifier if it has more levels than this share of the rows


@dataclass(frozen=True)
class Expected:
    """The columns of a fit. Later tables must have the same ones."""

    owner: str
    """The name of the estimator's class, for errors."""
    n_features: int
    names: tuple[str, ...] | None

    def read(self, X: Any) -> Columns:
        """Return the columns of a table. Other columns than those of the fit, or another order, are an error."""
        # Additional columns are not read, because the error needs only their names.
        columns = read_table(X, only=self.names)
        _check_any(columns)
        self._check(columns)
        return columns

    def _check(self, columns: Columns) -> None:
        """Check the names and the number of columns, with the error texts that scikit-learn's checks expect.

        scikit-learn reads names only from data frames; here, mappings and records have names, too.
        """
        who, names = self.owner, columns.names
        if self.names is not None and names is not None:
            if self.names != names:
                raise DataError(_other_names(self.names, names))
        elif self.names is not None:
            warn(f"X does not have valid feature names, but {who} was fitted with feature names", UserWarning)
        elif names is not None:
            warn(f"X has feature names, but {who} was fitted without feature names", UserWarning)
        n_found = len(columns.arrays)
        if n_found != self.n_features:
            raise DataError(f"X has {n_found} features, but {who} is expecting {self.n_features} features as input.")


def read_columns(X: Any) -> Columns:
    """Return the columns of a table to train on."""
    columns = read_table(X)
    _check_any(columns)
    if columns.n_rows == 0:
        raise DataError(
            f"Found array with 0 sample(s) (shape=(0, {len(columns.arrays)})) while a minimum of 1 is required."
        )
    return columns


def _check_any(columns: Columns) -> None:
    if not columns.arrays:
        raise DataError(
            f"Found array with 0 feature(s) (shape=({columns.n_rows}, 0)) while a minimum of 1 is required."
        )


def _other_names(expected: tuple[str, ...], found: tuple[str, ...]) -> str:
    text = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(found) - set(expected)), sorted(set(expected) - set(found))
    for names, title in ((unseen, "unseen at fit time"), (missing, "seen at fit time, yet now missing")):
        if names:
            shown = [f"- {name}\n" for name in names[:5]] + ["- ...\n"] * (len(names) > 5)
            text += f"Feature names {title}:\n{''.join(shown)}"
    return text if unseen or missing else f"{text}Feature names must be in the same order as they were in fit.\n"


def check_lengths(columns: Columns, y: Any) -> None:
    """Check that there is one target per row."""
    if isinstance(y, str):
        raise DataError(
            f"y must hold one target per row; got the text {y!r}. Only nae.scan takes the names of columns."
        )
    n_targets = len(np.atleast_1d(to_array(y)))
    if n_targets != columns.n_rows:
        raise DataError(
            "X and y must have one length: found input variables with inconsistent numbers of samples "
            f"[{columns.n_rows}, {n_targets}]."
        )


def read_eval_set(eval_set: Any) -> tuple[Any, Any, Any, Any]:
    """Return table, target, weights and offset of an evaluation set. Weights and offset are None if not given."""
    if isinstance(eval_set, list) and len(eval_set) == 1:
        eval_set = eval_set[0]
    if not isinstance(eval_set, tuple) or len(eval_set) not in (2, 3, 4):
        got = f"a {type(eval_set).__name__} of {len(eval_set)}" if hasattr(eval_set, "__len__") else repr(eval_set)
        raise ConfigError(f"eval_set must be a pair (X, y), or (X, y, sample_weight, offset); got {got}.")
    table, target, weight, offset = (*eval_set, None, None)[:4]
    return table, target, weight, offset


def read_callbacks(callbacks: Any) -> Sequence[Callable[..., Any]]:
    """Return the callbacks as a tuple."""
    if callbacks is None:
        return ()
    if callable(callbacks) or not all(callable(callback) for callback in callbacks):
        raise ConfigError(f"callbacks must be a list of functions; got {callbacks!r}.")
    return tuple(callbacks)


def held_out_rows(validation: Any, target: AnyArray, kept: IntArray, n_rows: int) -> IntArray:
    """Return which of the ``kept`` rows are held out by indices, a mask, or the first fold of a splitter.

    A splitter gets the kept rows only. Indices, masks and a predefined split refer to all ``n_rows`` of the table.
    """
    # Loading sklearn.model_selection takes a fifth of the time of importing the estimators.
    from sklearn.model_selection import PredefinedSplit

    if hasattr(validation, "split") and not isinstance(validation, PredefinedSplit):
        held_out = _split_once(validation, target)
    else:
        given = next(validation.split())[1] if isinstance(validation, PredefinedSplit) else validation
        held_out = np.flatnonzero(np.isin(kept, _indices(given, n_rows)))
    if not 0 < len(held_out) < len(kept):
        raise ConfigError(f"validation must leave rows on both sides; it takes {len(held_out)} of {len(kept)} rows.")
    return held_out


def random_rows(size: float, codes: AnyArray | None, n_rows: int, random: np.random.RandomState) -> IntArray:
    """Return a random share of the rows, stratified by class if every class has enough rows."""
    from sklearn.model_selection import train_test_split

    if codes is not None:
        counts = np.bincount(codes)
        if counts.min() < 2 or len(counts) > min(size, 1 - size) * n_rows:
            codes = None
    return np.asarray(train_test_split(np.arange(n_rows), test_size=size, random_state=random, stratify=codes)[1])


def random_folds(n_folds: int, codes: AnyArray | None, n_rows: int, random: np.random.RandomState) -> IntArray:
    """Return the random fold of every row. Folds have equal sizes and are stratified by class."""
    order = random.permutation(n_rows)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    return _dealt(order, n_folds)


def _dealt(order: IntArray, n_folds: int) -> IntArray:
    """Return the fold of every row: the first row of an order has fold 0, the next one fold 1, and so on."""
    folds = np.empty(len(order), dtype=np.int64)
    folds[order] = np.arange(len(order)) % n_folds
    return folds


def content_folds(n_folds: int, codes: AnyArray | None, digests: AnyArray) -> IntArray:
    """Return the fold of every row, stratified by class and independent of the order of the rows.

    Equal rows are sorted next to each other, so they get different folds; which of them gets which does not matter.
    """
    order = np.argsort(digests, kind="stable")
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    return _dealt(order, n_folds)


def _split_once(splitter: Any, target: AnyArray) -> IntArray:
    flat = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
    try:
        return np.asarray(next(iter(splitter.split(np.zeros((len(flat), 1)), flat)))[1])
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"validation={splitter!r} cannot split these rows: {error} A splitter is given no groups; "
            "pass the indices of the validation rows instead, such as next(splitter.split(X, y, groups))[1]."
        ) from error


def _indices(validation: Any, n_rows: int) -> IntArray:
    indices = np.asarray(validation)
    if indices.dtype == bool and indices.shape == (n_rows,):
        return np.flatnonzero(indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        hint = " A share of the rows is validation_size." if isinstance(validation, float) else ""
        raise ConfigError(
            f"validation must be a splitter, or the indices or a mask of the validation rows ({n_rows}); "
            f"got {type(validation).__name__} of shape {indices.shape}.{hint}"
        )
    outside = indices[(indices < 0) | (indices >= n_rows)]
    if len(outside):
        raise ConfigError(f"validation must hold rows in [0, {n_rows - 1}]; got {outside[0]}.")
    return indices


def warn_of_names(features: Sequence[Feature], n_rows: Sequence[int]) -> None:
    """Warn once about categories that look like identifiers; ``n_rows`` counts the rows in which each has a value.

    A column that the user declared as a category gives no warning.
    """
    found = [
        (feature.name, len(feature.levels) + len(feature.rare), n)
        for feature, n in zip(features, n_rows, strict=True)
        if isinstance(feature, Category) and not feature.is_given
    ]
    names = [one for one in found if one[1] > max(_FEW_LEVELS, _IDENTIFIER * one[2])]
    if not names:
        return
    listed = ", ".join(f"{name!r} ({n_levels:,} levels in {n:,} rows)" for name, n_levels, n in names)
    options = " ".join(f"--ignore {shlex.quote(name)}" for name, _, _ in names)
    is_one = len(names) == 1
    subject = f"Column {listed} looks like an identifier" if is_one else f"Columns {listed} look like identifiers"
    warn(
        f"{subject}. It will not generalise: drop {'it' if is_one else 'them'} (nae fit {options}), "
        "or ask for a category (feature_types, --category)."
    )


def warn_of_rounding(found: Mapping[str, int]) -> None:
    """Warn once about columns with integers that are too large for a float; ``found`` holds an example of each."""
    if not found:
        return
    listed = ", ".join(f"{name!r} (such as {value})" for name, value in found.items())
    first = next(iter(found))
    subject, verb = ("Column", "holds") if len(found) == 1 else ("Columns", "hold")
    warn(
        f"{subject} {listed} {verb} whole numbers beyond 2**53, which floats do not hold exactly; "
        "the nearest float is used. Subtract a constant to keep every digit, such as the first moment of timestamps, "
        f"or pass feature_types={{{first!r}: 'category'}} where they are identifiers.",
    )
