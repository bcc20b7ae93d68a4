"""Links: there and back, without overflow."""

import numpy as np
import pytest

from nae.errors import ConfigError, did_you_mean
from nae.links import LINKS, link_named


@pytest.mark.parametrize("name", ["identity", "log", "logit"])
def test_a_link_and_its_inverse_cancel(name):
    score = np.linspace(-5, 5, 21)[:, None]
    link = link_named(name)
    np.testing.assert_allclose(link.link(link.inverse(score)), score, atol=1e-10)


def test_softmax_and_its_inverse_cancel_up_to_a_constant():
    score = np.random.default_rng(0).normal(size=(10, 3))
    link = link_named("softmax")
    proba = link.inverse(score)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(link.link(proba), score - score.mean(axis=1, keepdims=True), atol=1e-10)


def test_extreme_scores_do_not_overflow():
    extreme = np.array([-1e4, 1e4])
    assert link_named("logit").inverse(extreme).tolist() == [0, 1]
    assert link_named("softmax").inverse(extreme[None]).tolist() == [[0, 1]]
    assert link_named("log").inverse(extreme).tolist() == [0, np.inf]


@pytest.mark.parametrize("name", sorted(LINKS))
@pytest.mark.parametrize("length", [0.0, 1e-12, 9e-4, 1.1e-3, 0.1, 3.0, 40.0])
def test_the_mean_slope_times_the_way_is_the_change_of_the_prediction(name, length):
    link, random = link_named(name), np.random.default_rng(0)
    start = random.normal(size=(50, 3)) * 2
    end = start + length * random.uniform(-1, 1, start.shape)
    changed = np.einsum("bko,bo->bk", link.mean_slope(start, end), end - start)
    before, after = link.inverse(start), link.inverse(end)
    np.testing.assert_allclose(changed, after - before, rtol=0, atol=1e-10 * max(1.0, after.max()))


def test_an_unknown_link_is_an_error_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"link must be one of .*; got 'logistic'"):
        link_named("logistic")
    with pytest.raises(ConfigError, match="Did you mean 'softmax'"):
        link_named("softmx")
    assert all(link_named(name).name == name for name in LINKS)


def test_hints_name_the_nearest_or_list_what_is_known():
    assert did_you_mean("hight", ["age", "height"]) == " Did you mean 'height'?"
    assert did_you_mean("zzz", ["age", "height"]) == " Known: 'age', 'height'."
    assert not did_you_mean("zzz", ["age", "height"], is_listed=True)
    assert did_you_mean("zzz", [f"name {i}" for i in range(20)]).endswith(", ….")
