"""Features that decide alone: no context changes the decision, and no fewer features fix it."""

from dataclasses import replace
from itertools import combinations, product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae._typing import AnyArray, BoolArray
from nae.decisions import SufficientReason, SufficientReasons
from nae.decisions.sufficient.hitting import smallest_hitting
from nae.encoding import Category, Columns, Number
from nae.encoding.cells import Cells
from nae.errors import UserError
from nae.explanation.inputs import values_on
from nae.explanation.within import read_domains
from nae.links import LINKS
from nae.ranges import Domain, whole
from nae.tables import TableModel
from nae.tables.gates import GATES
from tests.laws.models import make_model, make_table
from tests.ranges.completions import random_completions

FEATURES = (Number("a", np.array([0.0, 1.0, 2.0])), Number("b", np.array([0.0, 1.0])), Category("c", ("x", "y")))


def classifier(seed: int, *, n_classes: int = 2, **shape: Any) -> TableModel:
    shape = {"features": FEATURES, **shape}
    n_outputs = 1 if n_classes == 2 else n_classes
    model = make_model(np.random.default_rng(seed), n_outputs=n_outputs, **shape)
    if n_classes == 2:
        return replace(model, link=LINKS["logit"], classes=("no", "yes"), outputs=("yes",))
    return model


def decided(model: TableModel, X: Any, threshold: float | None) -> AnyArray:
    return model.predict(X) if threshold is None else model.predict(X) >= threshold


def every_row(model: TableModel) -> Cells:
    """Return the rows of all combinations of vertices."""
    domains = [whole(model, i) for i in range(model.n_features)]
    slots = np.array(list(product(*(domain.slot for domain in domains))))
    return Cells(slots, np.zeros(slots.shape))


def attack(
    model: TableModel, table: Columns, found: SufficientReasons, *, n: int, threshold: float | None = None
) -> int:
    """Check that no random context changes a decision; return how many were tried."""
    random, tried = np.random.default_rng(0), 0
    for row, one in enumerate(found.reasons):
        free = [i for i, name in enumerate(model.feature_names) if name not in one.features]
        own = table.take(np.array([row]))
        others = random_completions(random, model, own, free, n)
        assert set(decided(model, others, threshold)) == set(decided(model, own, threshold))
        tried += n
    return tried


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(GATES)), st.sampled_from([2, 3]), st.booleans())
def test_no_context_changes_what_is_decided(seed: int, gate: str, n_classes: int, is_clamped: bool) -> None:
    model = classifier(seed, n_classes=n_classes, gate=gate, n_members=2, is_clamped=is_clamped)
    table = make_table(np.random.default_rng(seed), model.schema, 3)
    found = model.sufficient_reasons(table)
    attack(model, table, found, n=300)
    rows = every_row(model)
    outcomes = model.predict(rows)
    for row, one in enumerate(found.reasons):
        cells = model.cells(table.take(np.array([row])))
        assert one.decision == f"the class is {model.predict(cells)[0]}"
        if not cells.fraction.any():  # the row stands on vertices itself
            kept = same(rows, cells, [model.feature_names.index(name) for name in one.features])
            assert set(outcomes[kept]) == set(model.predict(cells))


def same(rows: Cells, one: Cells, features: list[int]) -> BoolArray:
    return np.asarray((rows.slot[:, features] == one.slot[:, features]).all(axis=1))


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["additive", "low-rank", "deep"]), st.sampled_from([1, 3]))
def test_no_fewer_features_decide_it(seed: int, gate: str, n_experts: int) -> None:
    model = classifier(seed, gate=gate, n_experts=n_experts)
    rows = every_row(model)
    outcomes = model.predict(rows)
    some = np.random.default_rng(seed).integers(len(rows), size=2)
    for at in some:
        one = rows.take(np.array([at]))
        values = dict(zip(model.feature_names, values_on(model, one.slot[0]), strict=True))
        reason = model.sufficient_reasons({name: [value] for name, value in values.items()})[0]
        assert reason.is_smallest or n_experts > 1  # bounds are exact for additive models
        if reason.is_smallest:
            for fewer in combinations(range(3), len(reason.features) - 1) if reason.features else ():
                assert len(set(outcomes[same(rows, one, list(fewer))])) == 2


def additive(seed: int, n_features: int) -> TableModel:
    features = tuple(Number(f"x{i}", np.array([0.0, 1.0, 2.0])) for i in range(n_features))
    return classifier(seed, features=features, n_experts=1)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.5, 0.9]))
def test_for_an_additive_model_the_smallest_set_is_that_of_all_subsets(seed: int, threshold: float) -> None:
    model = additive(seed, 6)
    own = {f"x{i}": [float(value)] for i, value in enumerate(np.random.default_rng(seed).integers(0, 3, 6))}
    found = model.sufficient_reasons(own, threshold=threshold)[0]
    values = model.contributions(own).values[0]
    table = np.stack([model.experts[model.schema.slots(i)][:4, 0, 0, 0] for i in range(6)])  # three knots and missing
    limit = np.log(threshold / (1 - threshold))
    is_above = values.sum() + model.intercept[0] >= limit
    worst = table.min(axis=1) if is_above else table.max(axis=1)
    fits = [
        size
        for size in range(7)
        for kept in combinations(range(6), size)
        if is_sure(values, worst, list(kept), float(model.intercept[0]), float(limit), is_above=bool(is_above))
    ]
    assert len(found.features) == min(fits)
    assert found.is_smallest


def is_sure(values: AnyArray, worst: AnyArray, kept: list[int], start: float, limit: float, *, is_above: bool) -> bool:
    mixed = worst.copy()
    mixed[kept] = values[kept]
    total = start + mixed.sum()
    return bool(total >= limit) if is_above else bool(total < limit)


@pytest.mark.slow
def test_a_million_contexts_change_nothing() -> None:
    tried = 0
    for seed in range(20):
        gate = sorted(GATES)[seed % len(GATES)]
        model = classifier(seed, features=(), n_features=6, gate=gate, n_members=2, n_classes=2 + seed % 2)
        table = make_table(np.random.default_rng(seed), model.schema, 5)
        tried += attack(model, table, model.sufficient_reasons(table), n=10_000)
    assert tried == 1_000_000


# --- thresholds, limits and words


def test_a_number_is_above_or_below_a_threshold() -> None:
    model = make_model(np.random.default_rng(3), features=FEATURES, link="log")
    table = make_table(np.random.default_rng(3), model.schema, 4)
    threshold = float(np.median(model.predict(table)))
    found = model.sufficient_reasons(table, threshold=threshold)
    attack(model, table, found, n=300, threshold=threshold)
    assert {one.decision for one in found.reasons} == {
        f"the prediction is {w} {threshold:g}" for w in ("at least", "below")
    }
    moved = model.sufficient_reasons(table, threshold=threshold, offset=np.full(4, 50.0))
    assert all(one.features == () for one in moved.reasons)
    assert moved[0].sentence == f"The prediction is at least {threshold:g}, whatever the features are."


def test_limits_of_the_others_need_fewer_features() -> None:
    model = additive(1, 5)
    row = {f"x{i}": [1.0] for i in range(5)}
    free, limited = (
        model.sufficient_reasons(row, threshold=0.5, within=within)[0]
        for within in (None, {f"x{i}": (0.99, 1.01) for i in range(5)})
    )
    assert len(limited.features) <= len(free.features)
    domains: tuple[Domain, ...] = read_domains(model, (), {"x0": (0.99, 1.01)})
    assert len(domains) == 1


def test_the_smallest_set_that_meets_all_sets() -> None:
    sets = [frozenset(one) for one in ((1, 2), (2, 3), (4,), (4, 5))]
    assert smallest_hitting(sets, [5, 4, 3, 2, 1], 5) == (frozenset({2, 4}), True)
    assert smallest_hitting(sets, [1, 2, 3, 4, 5], 1) == (None, True)
    assert smallest_hitting([], [1], 1) == (frozenset(), True)


def test_sentences_say_what_decides_and_what_is_not_known() -> None:
    one = SufficientReason("the class is yes", ("a", "c"), ("1", "x"), 5, is_smallest=True)
    assert one.sentence == "a = 1 and c = x alone decide it: the class is yes, whatever the 3 other features are."
    open_ = replace(one, features=("a",), values=("1",), n_features=2, is_smallest=False)
    assert open_.sentence.startswith("a = 1 alone decides it: the class is yes, whatever the 1 other feature is.")
    assert open_.sentence.endswith("It is not proven that fewer would not do.")
    every = replace(one, n_features=2)
    assert every.sentence == "Only all 2 features together decide it: the class is yes. No fewer features do."
    found = SufficientReasons((one, every))
    assert found.text.splitlines()[1].startswith("Row 2: Only all")
    assert SufficientReasons.from_json(found.to_json()).text == found.text
    assert found.to_frame("polars")["n_features"].to_list() == [2, 2]
    assert "a, c" in repr(found)


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (make_model(np.random.default_rng(0), features=FEATURES), {}, "needs a threshold, such as threshold=100_000"),
        (classifier(0), {"toward": "yes"}, "name the class whose probability has a threshold"),
        (classifier(0), {"threshold": 1.5}, r"must be a possible prediction of the model; got 1\.5"),
        (classifier(0), {"threshold": "high"}, "threshold must be a number; got 'high'"),
        (classifier(0, n_classes=3), {"threshold": 0.5, "toward": "class 1"}, "needs two classes; this model has 3"),
        (classifier(0), {"tries": 0}, "tries must be an integer of at least 1"),
        (classifier(0), {"budget": 0}, "budget must be an integer of at least 1"),
    ],
)
def test_what_cannot_be_asked_is_refused(model: TableModel, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        model.sufficient_reasons({"a": [1.0], "b": [0.0], "c": ["x"]}, **given)
