"""Outputs stay apart by at least what is proven, and planted crossings are found."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae.certificates import Neighbours
from nae.encoding import Cells, Columns
from nae.errors import ConfigError
from nae.tables import Clamps, TableModel
from nae.tables.gates import GATES
from tests.certificates.planted import FEATURES
from tests.certificates.test_proofs import assert_within, in_double_precision
from tests.laws.drawn import models_with_tables
from tests.laws.models import make_model, make_table


def ordered_model(random: np.random.Generator, *, gate: str = "additive", n_outputs: int = 3) -> TableModel:
    """Return a model whose outputs are in order, for any input."""
    model = make_model(random, features=FEATURES, gate=gate, n_outputs=n_outputs, n_members=2, link="identity")
    model.experts[:] = np.sort(model.experts, axis=2)
    return replace(model, intercept=np.arange(float(n_outputs)), outputs=("low", "mid", "high")[:n_outputs])


def sorted_clamps(model: TableModel, random: np.random.Generator) -> Clamps:
    """Return clamps that cut much of every contribution, and are in order, too."""
    least, most = model.slot_bounds
    part = random.uniform(0.2, 0.5, (2, len(least), 1))
    return Clamps(np.sort(least + part[0] * (most - least), axis=1), np.sort(most - part[1] * (most - least), axis=1))


@settings(max_examples=60)
@given(models_with_tables(may_clamp=True), st.booleans())
def test_no_row_brings_outputs_closer_than_what_is_proven(drawn: tuple[TableModel, Columns], is_sorted: bool) -> None:
    model, table = in_double_precision(drawn[0]), drawn[1]
    if is_sorted:
        model.experts[:] = np.sort(model.experts, axis=2)
    for lower in range(model.n_outputs - 1):
        pair = Neighbours.of(model, lower)
        cells = model.cells(table)
        scores = model.contribute(cells).sum(axis=1) + model.intercept
        assert_within((scores[:, lower] - scores[:, lower + 1]).max(), pair.crossing(), pair.lower)
        found = pair.find()
        assert_within(found.gap, pair.crossing(), pair.lower)
        row = Cells(found.row[None], np.zeros((1, model.n_features)))
        score = model.contribute(row).sum(axis=1)[0] + model.intercept
        assert score[lower] - score[lower + 1] == pytest.approx(found.gap, abs=1e-9 * max(pair.lower.spread, 1.0))


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("is_clamped", [False, True])
def test_sorted_experts_are_proven(gate: str, is_clamped: bool) -> None:
    random = np.random.default_rng(0)
    model = ordered_model(random, gate=gate)
    if is_clamped:
        model = replace(model, clamps=sorted_clamps(model, random))
    found = model.certify(ordered=True)
    assert found.all_proven
    assert [one.claim for one in found.certificates] == [
        "The score of low is never above that of mid.",
        "The score of mid is never above that of high.",
    ]
    scores = model.decision_function(make_table(random, model.schema, 500))
    for at, one in enumerate(found.certificates):
        assert one.bound <= -1.0
        assert one.margin == pytest.approx(one.tolerance - one.bound)
        assert np.diff(scores, axis=1)[:, at].min() >= -one.bound
        assert one.sentence.startswith(f"Proven: {one.claim} For any input, they are at least ")


def test_one_expert_makes_the_distance_exact() -> None:
    random = np.random.default_rng(0)
    model = make_model(random, features=FEATURES, n_experts=1, n_outputs=2, link="identity")
    pair = Neighbours.of(model, 0)
    assert pair.find().gap == pytest.approx(pair.crossing())


@pytest.mark.parametrize("gate", GATES)
def test_a_planted_crossing_is_found(gate: str) -> None:
    model = ordered_model(np.random.default_rng(1), gate=gate)
    slot = model.schema.offsets[2] + 1  # of one level
    model.experts[slot, :, 1] = model.experts[slot, :, 2] + 50.0
    kept, broken = model.certify(ordered=True).certificates
    assert kept.verdict == "proven"
    assert broken.verdict == "refuted"
    example = broken.counterexample
    assert example is not None
    assert example.inputs[0][2] == "Köln"
    assert example.changed == ()
    scores = model.decision_function([dict(zip(example.features, example.inputs[0], strict=True))])[0]
    np.testing.assert_allclose(scores[1:], example.scores, atol=1e-9)
    assert example.violation == pytest.approx(scores[1] - scores[2])
    assert f"The scores of mid and high are {scores[1]:.6g} and {scores[2]:.6g}, with " in broken.sentence


def test_clamps_that_cross_are_found() -> None:
    random = np.random.default_rng(0)
    model = ordered_model(random)
    clamps = sorted_clamps(model, random)
    clamps.lower[:, 0] = clamps.upper[:, 0] = clamps.upper.max(axis=1) + 10
    assert replace(model, clamps=clamps).certify(ordered=True)[0].verdict == "refuted"


def test_intercepts_count() -> None:
    model = ordered_model(np.random.default_rng(0))
    apart = -model.certify(ordered=True)[0].bound
    near = replace(model, intercept=model.intercept + np.array([0.999 * apart, 0, 0]))
    assert near.certify(ordered=True).all_proven
    assert near.certify(ordered=True)[0].bound == pytest.approx(-0.001 * apart)
    assert (
        replace(model, intercept=model.intercept + np.array([100.0, 0, 0])).certify(ordered=True)[0].verdict
        == "refuted"
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_outputs": 1}, "ordered needs outputs with an order, such as several quantiles; this model has one output"),
        ({"n_outputs": 3}, "this model has 3 classes"),
    ],
)
def test_a_model_without_ordered_outputs_is_refused(options: dict[str, int], error: str) -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, **options)
    with pytest.raises(ConfigError, match=error):
        model.certify(ordered=True)
