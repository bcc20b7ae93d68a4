"""From a network to a model: unseen values filled in, contributions centred, precision kept."""

import numpy as np
import pytest

from nae.encoding import Category, Number, Schema
from nae.engines.torch.scores import score_cells
from nae.errors import TrainingError
from nae.explanation.statistics import remember
from nae.links import LINKS
from nae.network.untrained import fill_table
from nae.tables import TableModel
from nae.training.assemble import Scale, assemble, padded_slots
from tests.training.problems import N_ROWS, Problem


def assembled(problem: Problem, *, weights=None, scale: Scale | None = None, network=None, **names) -> TableModel:
    return assemble(
        network or problem.network(),
        problem.schema,
        problem.cells,
        np.ones(N_ROWS) if weights is None else weights,
        scale or Scale(np.zeros(1), np.ones(1)),
        link=LINKS["identity"],
        **{"outputs": ("score",)} | names,
    )


def test_slots_are_padded_to_the_longest_feature():
    schema = Schema((Number("a", np.arange(3.0)), Category("b", ("x",))))
    assert padded_slots(schema).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert padded_slots(Schema(schema.features[::-1])).tolist() == [0, 1, 2, 5, 6, 7, 8, 9]


def test_untrained_slots_are_means_by_weight():
    schema = Schema((Category("a", ("x", "y")), Category("b", ("x", "y"), has_missing=True)))
    table = np.array([[1.0], [4.0], [9.0], [9.0], [10.0], [40.0], [7.0], [9.0]])
    weight = np.array([2.0, 1.0, 0.0, 0.0, 1.0, 1.0, 5.0, 0.0])
    found = fill_table(table, schema, weight)[:, 0].tolist()
    assert found == [1, 4, 2, 2, 10, 40, 7, 25]


def test_a_feature_of_missing_values_alone_says_the_same_everywhere():
    schema = Schema((Number("a", np.zeros(1), has_missing=True),))
    table = fill_table(np.array([[1.0], [5.0], [9.0]]), schema, np.array([0.0, 3.0, 0.0]))
    assert table[:, 0].tolist() == [5, 5, 5]


def test_contributions_average_zero_and_the_score_does_not_change():
    problem = Problem()
    weights = np.random.default_rng(0).uniform(0.1, 3, N_ROWS)
    network = problem.network()
    model = assembled(problem, weights=weights, network=network)
    found = model.contributions(problem.cells)
    np.testing.assert_allclose(weights @ found.values, 0, atol=1e-9)
    expected = score_cells(network, problem.rows().cells)[:, 0]
    np.testing.assert_allclose(found.score, expected, atol=1e-9)


def test_the_scale_of_the_target_is_put_back():
    problem = Problem()
    plain = assembled(problem).decision_function(problem.cells)
    scaled = assembled(problem, scale=Scale(np.array([100.0]), np.array([7.0]))).decision_function(problem.cells)
    np.testing.assert_allclose(scaled, 7 * plain + 100)


def test_single_precision_stays_single():
    problem = Problem()
    assert assembled(problem).experts.dtype == np.float64
    model = assembled(problem, network=problem.network(dtype=np.float32))
    assert {model.experts.dtype, model.gate.terms.dtype, model.gate.bias.dtype} == {np.dtype(np.float32)}
    assert model.intercept.dtype == np.float64


def test_tables_that_are_not_finite_are_an_error():
    problem = Problem()
    network = problem.network()
    broken = {"expert_weight": np.full_like(network.arrays["expert_weight"], np.inf)}
    network = network.with_arrays({**network.arrays, **broken})
    with pytest.raises(
        TrainingError, match=r"Training diverged: the tables it left are not finite. Lower learning_rate"
    ):
        assembled(problem, network=network)


@pytest.mark.parametrize("spread", [1e60, 1e-60])
def test_tables_beyond_single_precision_are_kept_in_double(spread):
    problem = Problem()
    network = problem.network(dtype=np.float32)
    assert assembled(problem, network=network).experts.dtype == np.float32
    model = assembled(problem, network=network, scale=Scale(np.zeros(1), np.array([spread])))
    assert model.experts.dtype == model.gate.terms.dtype == np.float64
    assert np.abs(model.experts).max() > 0.01 * spread


def test_statistics_are_those_of_the_training_rows():
    problem = Problem()
    model = remember(assembled(problem), problem.cells, np.ones(N_ROWS))
    statistics = model.statistics
    values = model.contributions(problem.cells).values
    np.testing.assert_allclose(statistics.variance[:, 0], values.var(axis=0))
    np.testing.assert_allclose(statistics.score_variance, values.sum(axis=1).var())
    assert statistics.weight.sum() == pytest.approx(2 * N_ROWS)
    for i in range(2):
        slots = model.schema.slots(i)
        mean = np.tensordot(statistics.weight[slots] / N_ROWS, model.gate.terms[slots], axes=1)
        np.testing.assert_allclose(statistics.gate_mean[i], mean)
