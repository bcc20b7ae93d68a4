"""The dial on a small table that is all interaction: what it promises is measured on rows, not on a few batches."""

import warnings

import pytest

from nae import NAERegressor, datasets, metrics
from nae.errors import NAEWarning


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_target_is_reached_whatever_the_seed(seed: int) -> None:
    X, y = datasets.multimodal(1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NAEWarning)
        model = NAERegressor(additivity=0.9, random_state=seed).fit(X, y)
    assert float(metrics.additivity(model, X)) == pytest.approx(0.9, abs=0.035)
    kept = model.history_.epochs[model.history_.best_epoch - 1]
    assert kept.additivity >= 0.88
