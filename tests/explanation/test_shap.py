from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest

from nae import LocalExplanation
from nae.errors import UserError
from nae.explanation.shap import to_shap
from tests.plots.explained import NAMES, local_of, model_of, rows_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # shap's own, of its plotting calls
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
shap = pytest.importorskip("shap")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    with mpl.rc_context():
        yield
    plt.close("all")


def test_every_part_is_filled() -> None:
    local = local_of()
    found = local.to_shap()
    np.testing.assert_array_equal(found.values, local.values[..., 0])
    np.testing.assert_array_equal(found.lower_bounds, local.lower[..., 0])
    np.testing.assert_array_equal(found.upper_bounds, local.upper[..., 0])
    np.testing.assert_array_equal(found.main_effects, local.own[..., 0])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), local.score[:, 0])
    assert found.feature_names == list(NAMES)


def test_texts_are_shown_as_they_are_and_counted_for_colours() -> None:
    local = local_of()
    found = local.to_shap()
    assert found.data.dtype == np.float64
    assert found.display_data[0, 4] == local.columns[4][0]
    same = found.display_data[:, 4][:, None] == found.display_data[:, 4][None, :]
    codes = found.data[:, 4]
    np.testing.assert_array_equal(same, codes[:, None] == codes[None, :])


def test_one_output_of_several_can_be_taken() -> None:
    local = local_of(3)
    assert local.to_shap().values.shape == (10, 5, 3)
    assert local.to_shap().output_names == ["class 0", "class 1", "class 2"]
    one = local.to_shap("class 1")
    np.testing.assert_array_equal(one.values, local.values[..., 1])
    np.testing.assert_array_equal(local.to_shap(-1).values, local.values[..., 2])
    with pytest.raises(UserError, match=r"No output is called 'class 9'"):
        local.to_shap("class 9")
    with pytest.raises(UserError, match=r"An output's position must be in \[0, 2\]; got 7\."):
        local.to_shap(7)


def test_shaps_plots_run() -> None:
    found = model_of().explain_local(rows_of(200)).to_shap()
    shap.plots.beeswarm(found, show=False)
    shap.plots.waterfall(found[0], show=False)
    shap.plots.scatter(found[:, "income"], show=False)
    shap.plots.bar(found, show=False)


def test_it_says_that_these_are_not_shapley_values() -> None:
    assert LocalExplanation.to_shap.__doc__ is not None
    assert "not** Shapley values" in LocalExplanation.to_shap.__doc__
    assert to_shap.__doc__ is not None
