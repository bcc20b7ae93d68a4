"""What the laws say, as assertions. Each has a test that it can fail."""

from dataclasses import fields

import numpy as np

from nae._typing import Array
from nae.contributions import Contributions
from nae.tables import TableModel

__all__ = [
    "assert_additive",
    "assert_bounded",
    "assert_close",
    "assert_same_contributions",
    "assert_same_model",
    "assert_simplex",
    "assert_tight",
]


def assert_close(found: Array, expected: Array, *, dtype: type = np.float64) -> None:
    """Check that two arrays of one shape agree, as far as sums in ``dtype`` can."""
    tolerance = 1e-10 if np.dtype(dtype) == np.float64 else 1e-3
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def assert_additive(contributions: Contributions, score: Array) -> None:
    """Check that intercept and contributions make up the score."""
    assert_close(contributions.values.sum(axis=1) + contributions.intercept, score)


def assert_bounded(contributions: Contributions) -> None:
    """Check that every contribution lies within its bounds; there is no tolerance."""
    for array in (contributions.values, contributions.lower, contributions.upper):
        assert np.isfinite(array).all()
    assert np.all(contributions.lower <= contributions.values)
    assert np.all(contributions.values <= contributions.upper)


def assert_tight(contributions: Contributions) -> None:
    """Check that the bounds leave no room: what is left is rounding."""
    scale = np.abs(contributions.values).max(initial=1.0)
    assert np.all(contributions.upper - contributions.lower <= 1e-6 * scale)


def assert_simplex(weights: Array, *, n_active: int, axis: int) -> None:
    """Check that weights are not negative, sum to one, and that at most ``n_active`` are used."""
    assert np.all(weights >= 0)
    np.testing.assert_allclose(weights.sum(axis=axis), 1.0, rtol=1e-5)
    assert np.all((weights > 0).sum(axis=axis) <= n_active)


def assert_same_contributions(found: Contributions, expected: Contributions, *, dtype: type = np.float64) -> None:
    """Check that two explanations say the same of every row."""
    assert found.feature_names == expected.feature_names
    for name in ("values", "lower", "upper", "intercept"):
        assert_close(getattr(found, name), getattr(expected, name), dtype=dtype)


def assert_same_model(found: TableModel, expected: TableModel) -> None:
    """Check that two models are equal to the last bit."""
    for item in fields(TableModel):
        _assert_identical(getattr(found, item.name), getattr(expected, item.name), item.name)


def _assert_identical(found: object, expected: object, where: str) -> None:
    assert type(found) is type(expected), where
    if isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), where
        assert found.tobytes() == expected.tobytes(), where
    elif isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            _assert_identical(one, other, f"{where}[{i}]")
    elif hasattr(expected, "__dataclass_fields__"):
        for item in fields(expected):  # type: ignore[arg-type]
            _assert_identical(getattr(found, item.name), getattr(expected, item.name), f"{where}.{item.name}")
    else:
        assert found == expected, where
