"""Proofs about models with clamps: monotone clamps keep a monotone model, and a clamp that falls is found."""

from dataclasses import replace

import numpy as np
import pytest

from nae.certificates import attack, tables_of
from nae.tables import Clamps, TableModel
from tests.certificates.planted import monotone_model

SEEDS = range(5)


def narrowed(model: TableModel, part: float = 0.3) -> TableModel:
    """Return the model with clamps that cut off a part of the range at both sides, at every slot."""
    least, most = model.slot_bounds
    cut = part * (most - least)
    return replace(model, clamps=Clamps(least + cut, most - cut))


@pytest.mark.parametrize("seed", SEEDS)
def test_monotone_clamps_keep_a_monotone_model(seed):
    model = narrowed(monotone_model(np.random.default_rng(seed), gate="additive"))
    tables = tables_of(model, np.ones(1))
    assert tables.drop(0, 1) <= 1e-12
    assert attack(tables, 0, sign=1, seed=seed).gap <= 1e-12
    assert model.certify(monotone={"income": "+"})[0].verdict == "proven"


@pytest.mark.parametrize("end", ["lower", "upper"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_clamp_that_falls_is_found(seed, end):
    model = narrowed(monotone_model(np.random.default_rng(seed), gate="additive"))
    first, last = model.schema.offsets[0], model.schema.offsets[0] + model.schema.features[0].n_values - 1
    ends = {name: values.copy() for name, values in model.clamps.to_arrays().items()}
    if end == "lower":
        ends["lower"][first] = ends["upper"][first] = ends["upper"][last] + 1.0
    else:
        ends["upper"][last] = ends["lower"][last] = ends["lower"][first] - 1.0
    found = replace(model, clamps=Clamps(**ends)).certify(monotone={"income": "+"})[0]
    assert found.verdict == "refuted"
    assert found.counterexample is not None
    assert found.counterexample.violation > 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_narrower_clamps_prove_a_smaller_effect(seed):
    model = monotone_model(np.random.default_rng(seed), gate="additive")
    bounds = [tables_of(narrowed(model, part), np.ones(1)).effect(2) for part in (0.0, 0.2, 0.4, 0.5)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.9 * bounds[0]


def test_clamps_that_leave_one_value_isolate_the_feature():
    model = narrowed(monotone_model(np.random.default_rng(0), gate="additive"), 0.5)
    found = model.certify(unchanged=["town", "income"])
    assert [one.verdict for one in found.certificates] == ["proven", "proven"]


def test_the_score_of_two_outputs_is_bounded_by_both():
    model = narrowed(monotone_model(np.random.default_rng(1), gate="additive"))
    tables = tables_of(model, np.ones(1))
    both = replace(
        model,
        experts=np.repeat(model.experts, 2, axis=2),
        clamps=Clamps(*(np.repeat(end, 2, axis=1) for end in (model.clamps.lower, model.clamps.upper))),
        intercept=np.zeros(2),
        outputs=("a", "b"),
    )
    summed = tables_of(both, np.array([0.5, -2.0]))
    for name in ("effect", "changes", "changed"):
        assert getattr(summed, name)(1) == pytest.approx(2.5 * getattr(tables, name)(1))
    assert summed.spread == pytest.approx(2.5 * tables.spread)
