from dataclasses import replace

import numpy as np
import pytest

from nae.errors import DataError
from nae.metrics import stability
from nae.tables import TableModel
from tests.laws.models import make_model, make_table, permuted


def twins(model: TableModel) -> TableModel:
    """Return the model with its first member twice."""
    gate = model.gate
    return replace(
        model,
        experts=np.repeat(model.experts[..., :1], 2, axis=-1),
        gate=replace(
            gate, terms=np.repeat(gate.terms[..., :1], 2, axis=-1), bias=np.repeat(gate.bias[:, :1], 2, axis=1)
        ),
    )


def test_members_that_say_the_same_are_stable() -> None:
    random = np.random.default_rng(0)
    model = make_model(random, n_features=3)
    table = make_table(random, model.schema, 50)
    found = stability(twins(model), table)
    assert float(found) == pytest.approx(1.0)
    assert all(value == pytest.approx(1.0) for value in found.per_feature.values())


def test_members_that_differ_are_not() -> None:
    random = np.random.default_rng(1)
    model = make_model(random, n_features=4, n_members=8, n_experts=1)
    found = stability(model, make_table(random, model.schema, 300))
    assert all(value < 0.6 for value in found.per_feature.values())


def test_it_is_the_mean_correlation_where_variances_are_equal() -> None:
    random = np.random.default_rng(2)
    model = make_model(random, n_features=1, n_members=3, n_experts=1)
    table = make_table(random, model.schema, 200)
    values = np.stack([model.experts[:, 0, 0, m] for m in range(3)], axis=1)[model.cells(table).slot[:, 0]]
    exact = model.cells(table).fraction[:, 0] == 0
    table = table.take(np.flatnonzero(exact))
    values = values[exact]
    scaled = replace(model, experts=model.experts / values.std(axis=0))
    correlation = np.corrcoef(values.T)
    expected = (correlation.sum() - 3) / 6
    assert float(stability(scaled, table)) == pytest.approx(expected, abs=1e-5)


def test_models_are_compared_by_name() -> None:
    random = np.random.default_rng(3)
    model = make_model(random, n_features=3)
    table = make_table(random, model.schema, 50)
    assert float(stability([model, permuted(model, [2, 0, 1])], table)) == pytest.approx(1.0)
    other = replace(model, experts=-model.experts)
    assert float(stability([model, other], table)) == pytest.approx(-1.0, abs=1e-5)


def test_weights_count() -> None:
    random = np.random.default_rng(4)
    model = make_model(random, n_features=2, n_members=3)
    table = make_table(random, model.schema, 20)
    twice = table.take(np.repeat(np.arange(20), 2))
    assert float(stability(model, table, sample_weight=np.full(20, 2.0))) == pytest.approx(
        float(stability(model, twice))
    )


def test_a_feature_that_nobody_uses_is_agreed_upon() -> None:
    random = np.random.default_rng(5)
    model = make_model(random, n_features=2, n_members=3)
    model.experts[model.schema.slots(1)] = 0.0
    found = stability(model, make_table(random, model.schema, 50))
    assert found.per_feature["f1"] == pytest.approx(1.0)


def test_what_is_wrong_with_a_call_is_said() -> None:
    random = np.random.default_rng(6)
    model = make_model(random, n_features=2)
    table = make_table(random, model.schema, 5)
    with pytest.raises(DataError, match="got one model of one member"):
        stability(model, table)
    with pytest.raises(DataError, match="the same features and outputs; theirs differ"):
        stability([model, make_model(random, n_features=3)], table)
    with pytest.raises(DataError, match=r"one weight each; got 5 and shape \(2,\)"):
        stability([model, model], table, sample_weight=[1, 2])
