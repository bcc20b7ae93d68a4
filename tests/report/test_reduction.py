import numpy as np
import pytest

from nae.encoding import Columns, Number, Schema
from nae.explanation import with_statistics
from nae.links import LINKS
from nae.report.packing import pack, pack_small
from nae.report.reduction import PAGE_LIMIT, fit_into_page
from nae.tables import GateTables, SoftmaxRouting, TableModel
from tests.explanation.examples import explained_model


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_packed_array_comes_back_as_it_was(dtype: type) -> None:
    array = np.random.default_rng(0).standard_normal(100).astype(dtype)
    packed = pack(array)
    assert packed.type == ("f32" if dtype is np.float32 else "f64")
    np.testing.assert_array_equal(packed.numbers(), array)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_small_array_is_off_by_half_a_step_at_most(scale: float) -> None:
    array = scale * np.random.default_rng(0).standard_normal(1000)
    packed = pack_small(array)
    step = (array.max() - array.min()) / 65535
    np.testing.assert_allclose(packed.numbers(), array, rtol=1e-6, atol=0.51 * step)


def test_a_constant_array_can_be_made_small() -> None:
    np.testing.assert_array_equal(pack_small(np.full(3, 0.0)).numbers(), 0.0)
    np.testing.assert_allclose(pack_small(np.full(3, 2.5)).numbers(), 2.5, rtol=1e-6)


def test_a_model_that_fits_is_carried_as_it_is() -> None:
    model, columns = explained_model(1, n_members=2)
    fitted = fit_into_page(model, columns)
    assert fitted.model is model
    assert fitted.reduction is None
    np.testing.assert_array_equal(fitted.arrays["experts"].numbers(), model.experts.ravel())


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep", "diagonal"])
def test_a_large_model_loses_bits_first_and_says_what_that_changed(gate: str) -> None:
    model, columns = explained_model(3, n_members=4, gate=gate)
    cells = model.cells(columns)
    size = (model.experts.size + model.gate.terms.size + (0 if model.gate.mix is None else model.gate.mix.size)) * 8 / 3
    fitted = fit_into_page(model, columns, limit=int(size) + 1)
    found = fitted.reduction
    assert found is not None
    assert (found.members, found.of_members, found.knot_stride) == (4, 4, 1)
    difference = np.abs(fitted.model.decision_function(cells) - model.decision_function(cells)).max()
    assert 0 < found.largest_difference == difference < 1e-2


def smooth_model(n_members: int) -> TableModel:
    """Return a model whose members differ and whose curves are straight between a few of its knots."""
    random = np.random.default_rng(0)
    knots = np.linspace(0.0, 1.0, 65)
    at = np.concatenate([knots, [0.0, 0.0], knots, [0.0, 0.0]])[:, None, None]
    model = TableModel(
        schema=Schema((Number("a", knots), Number("b", knots))),
        experts=np.concatenate([at, -at], axis=1)[:, :, None] * random.standard_normal((1, 1, 1, n_members)),
        gate=GateTables("additive", at * random.standard_normal((1, 4, n_members)), np.zeros((4, n_members))),
        routing=SoftmaxRouting(2),
        intercept=np.zeros(1),
        link=LINKS["identity"],
    )
    return with_statistics(model, {"a": random.uniform(size=200), "b": random.uniform(size=200)})


def test_knots_go_first_where_nobody_needs_them() -> None:
    model = smooth_model(4)
    columns = Columns((np.linspace(0, 1, 50), np.linspace(1, 0, 50)), ("a", "b"))
    fitted = fit_into_page(model, columns, limit=(model.experts.size + model.gate.terms.size) * 8 // 6)
    found = fitted.reduction
    assert found is not None
    assert found.members == 4
    assert found.knot_stride > 1
    assert found.largest_difference < 1e-3
    assert fitted.model.schema.features[0].labels[-3] == "1"  # the last knot stays
    assert fitted.model.statistics is not None
    assert model.statistics is not None
    assert fitted.model.statistics.weight.sum() == pytest.approx(model.statistics.weight.sum())


def test_members_go_where_knots_are_few_and_the_mean_of_every_contribution_stays() -> None:
    model, columns = explained_model(3, n_members=4, n_features=4)
    fitted = fit_into_page(model, columns, limit=(model.experts.size + model.gate.terms.size) * 8 // 6)
    assert fitted.reduction is not None
    assert fitted.reduction.members == fitted.model.n_members < 4
    assert fitted.model.statistics is not None
    assert fitted.model.statistics.gate_mean.shape[-1] == fitted.model.n_members
    found, asked = (one.contributions(columns).values.mean(axis=0) for one in (fitted.model, model))
    np.testing.assert_allclose(found, asked, atol=1e-2)


def test_one_member_always_stays() -> None:
    model, columns = explained_model(3, n_members=3)
    fitted = fit_into_page(model, columns, limit=1)
    assert fitted.model.n_members == 1
    assert PAGE_LIMIT == 20_000_000
