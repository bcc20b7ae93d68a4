"""The simulated tables of the paper: small functions whose truth is known.

Each returns ``(X, y)``: a dict from feature names to columns, which every estimator takes as a table, and the target.
"""

import numpy as np

from nae._typing import Array
from nae.errors import ConfigError

__all__ = ["Table", "correlated", "generic", "modality", "multimodal", "unimodal"]

Table = dict[str, Array]


def unimodal(n_rows: int = 10_000, *, noise: float = 0.1, seed: int = 0) -> tuple[Table, Array]:
    """Return an additive table: ``y = x1 - 1/2 + sin(4 pi x1) + noise``.

    Parameters
    ----------
    n_rows
        Number of rows.
    noise
        Standard deviation of the noise, which is the lowest RMSE that a model can reach.
    seed
        Random seed.

    Examples
    --------
    >>> X, y = unimodal(100)
    >>> list(X), y.shape
    (['x1'], (100,))
    """
    random = _generator(n_rows, noise, seed)
    x1 = random.uniform(size=n_rows)
    return {"x1": x1}, x1 - 0.5 + _wave(x1) + noise * random.standard_normal(n_rows)


def multimodal(
    n_rows: int = 10_000, *, minority: float = 0.5, noise: float = 0.1, seed: int = 0
) -> tuple[Table, Array]:
    """Return a table in which ``x2``, either -1 or 1, flips the sign of the wave of ``x1``.

    ``y = x1 - 1/2 + x2 sin(4 pi x1) + noise``. No additive model does better than the line ``x1 - 1/2``.

    Parameters
    ----------
    n_rows
        Number of rows.
    minority
        Share of the rows with ``x2 = 1``.
    noise
        Standard deviation of the noise.
    seed
        Random seed.

    Examples
    --------
    >>> X, y = multimodal(1000, minority=0.05)
    >>> bool(0.02 < (X["x2"] == 1).mean() < 0.08)
    True
    """
    if not 0 <= minority <= 1:
        raise ConfigError(f"minority must be in [0, 1]; got {minority}.")
    random = _generator(n_rows, noise, seed)
    x1 = random.uniform(size=n_rows)
    x2 = _signs(random, np.full(n_rows, minority))
    return {"x1": x1, "x2": x2}, x1 - 0.5 + x2 * _wave(x1) + noise * random.standard_normal(n_rows)


def modality(
    n_rows: int = 10_000, *, n_categorical: int = 3, noise: float = 0.01, seed: int = 0
) -> tuple[Table, Array]:
    """Return a table with a wave of ``n_categorical + 1`` different amplitudes.

    ``y = x1 - 1/2 + mean(x2, x3, ...) sin(4 pi x1) + noise``, where ``x2``, ``x3``, ... are -1 or 1.

    Parameters
    ----------
    n_rows
        Number of rows.
    n_categorical
        Number of features that scale the wave.
    noise
        Standard deviation of the noise.
    seed
        Random seed.

    Examples
    --------
    >>> X, y = modality(10, n_categorical=5)
    >>> list(X)
    ['x1', 'x2', 'x3', 'x4', 'x5', 'x6']
    """
    if n_categorical < 1:
        raise ConfigError(f"n_categorical must be at least 1; got {n_categorical}.")
    random = _generator(n_rows, noise, seed)
    x1 = random.uniform(size=n_rows)
    signs = _signs(random, np.full((n_categorical, n_rows), 0.5))
    y = x1 - 0.5 + signs.mean(axis=0) * _wave(x1) + noise * random.standard_normal(n_rows)
    return {"x1": x1} | {f"x{i}": column for i, column in enumerate(signs, start=2)}, y


def correlated(n_rows: int = 10_000, *, rho: float = 0.5, noise: float = 0.1, seed: int = 0) -> tuple[Table, Array]:
    """Return a table whose ``x2``, either -1 or 1, depends on ``x1``: ``P(x2 = 1 | x1) = rho x1 + (1 - rho) / 2``.

    ``y = x2 sin(4 pi x1) + x2 + noise``.

    Parameters
    ----------
    n_rows
        Number of rows.
    rho
        Strength of the dependence, from 0 to 1.
    noise
        Standard deviation of the noise.
    seed
        Random seed.

    Examples
    --------
    >>> X, y = correlated(1000, rho=0.9)
    >>> bool(X["x1"][X["x2"] == 1].mean() > 0.6)
    True
    """
    if not 0 <= rho <= 1:
        raise ConfigError(f"rho must be in [0, 1]; got {rho}.")
    random = _generator(n_rows, noise, seed)
    x1 = random.uniform(size=n_rows)
    x2 = _signs(random, rho * x1 + (1 - rho) / 2)
    return {"x1": x1, "x2": x2}, x2 * _wave(x1) + x2 + noise * random.standard_normal(n_rows)


def generic(n_rows: int = 10_000, *, noise: float = 0.1, seed: int = 0) -> tuple[Table, Array]:
    """Return a table with a product of waves: ``y = 2 sin(pi x1) cos(pi x2) + (x1^2 + x2^2) / 2 + noise``.

    Parameters
    ----------
    n_rows
        Number of rows; both features are uniform on [-1, 1].
    noise
        Standard deviation of the noise.
    seed
        Random seed.

    Examples
    --------
    >>> X, y = generic(100)
    >>> bool(min(X["x1"]) >= -1 and max(X["x1"]) <= 1)
    True
    """
    random = _generator(n_rows, noise, seed)
    x1, x2 = random.uniform(-1, 1, size=(2, n_rows))
    y = 2 * np.sin(np.pi * x1) * np.cos(np.pi * x2) + 0.5 * x1**2 + 0.5 * x2**2
    return {"x1": x1, "x2": x2}, y + noise * random.standard_normal(n_rows)


def _wave(x1: Array) -> Array:
    return np.asarray(np.sin(4 * np.pi * x1))


def _signs(random: np.random.Generator, probability: Array) -> Array:
    """Return 1 with the given probability, else -1."""
    return np.where(random.uniform(size=probability.shape) < probability, 1.0, -1.0)


def _generator(n_rows: int, noise: float, seed: int) -> np.random.Generator:
    if n_rows < 1:
        raise ConfigError(f"n_rows must be at least 1; got {n_rows}.")
    if not noise >= 0:
        raise ConfigError(f"noise must not be negative; got {noise}.")
    return np.random.default_rng(seed)
