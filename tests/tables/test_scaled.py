"""A model whose score is multiplied: everything that it answers is, and nothing else changes."""

from typing import Any

import numpy as np
import pytest

from nae.explanation import with_statistics
from nae.tables.scaled import scaled
from tests.explanation.examples import explained_model
from tests.laws.models import make_table


@pytest.mark.parametrize("shape", [{"n_outputs": 3}, {"gate": "deep", "n_members": 2}, {"is_clamped": True}])
def test_contributions_bounds_and_statistics_are_multiplied(shape: dict[str, Any]) -> None:
    model, columns = explained_model(1, **shape)
    found, slope = scaled(model, 0.6), 0.6
    for name in ("values", "lower", "upper", "intercept"):
        one, other = (getattr(each.contributions(columns), name) for each in (found, model))
        np.testing.assert_allclose(one, slope * other, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.decision_function(columns), slope * model.decision_function(columns))
    rows = make_table(np.random.default_rng(1), model.schema, 60)
    expected = with_statistics(found, rows).statistics
    assert found.statistics is not None
    assert expected is not None
    for name, values in found.statistics.to_arrays().items():
        np.testing.assert_allclose(values, getattr(expected, name), rtol=1e-6, atol=1e-9, err_msg=name)


def test_numbers_keep_their_type_and_the_slope_is_positive() -> None:
    model, _ = explained_model(2, dtype=np.float32)
    assert scaled(model, 1.5).experts.dtype == np.float32
    assert scaled(model, 1.5).intercept.dtype == np.float64
    with pytest.raises(ValueError, match="The slope must be positive; got 0"):
        scaled(model, 0.0)
