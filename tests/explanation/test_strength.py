from dataclasses import replace

import numpy as np
import pytest

from nae.errors import UserError
from nae.explanation import InteractionStrength, with_statistics
from tests.explanation.examples import explained_model, remembering
from tests.laws.models import make_model, make_table


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep"])
def test_strength_is_the_root_mean_square_of_the_parts(gate: str) -> None:
    random = np.random.default_rng(0)
    model = make_model(random, n_features=4, gate=gate, n_outputs=2)
    train = make_table(random, model.schema, 100)
    model = with_statistics(model, train)
    local, found = model.explain_local(train), model.interaction_strength()
    for i in range(4):
        for j in range(4):
            if i != j:
                parts = local.parts[:, i][local.causes[:, i] == j].reshape(100, 2)
                np.testing.assert_allclose(found.strength[i, j], np.sqrt(np.mean(parts**2, axis=0)))
    assert np.all(found.matrix()[np.arange(4), np.arange(4)] == 0)


def test_it_tells_who_changes_whom() -> None:
    model, _ = explained_model(1, n_features=4)
    terms = model.gate.terms.copy().reshape(-1, 3, 4, 1)
    kept = np.zeros((4, 4))
    kept[2, 1] = 1.0  # feature 2 speaks to the gate of feature 1 alone
    for j in range(4):
        terms[model.schema.slots(j)] *= kept[j][None, None, :, None]
    lonely = remembering(replace(model, gate=replace(model.gate, terms=terms.reshape(model.gate.terms.shape))))
    matrix = lonely.interaction_strength().matrix()
    assert matrix[1, 2] > 0.1
    matrix[1, 2] = 0
    np.testing.assert_allclose(matrix, 0.0, atol=1e-12)
    best = lonely.top_interactions(1)[0]
    assert (best.first, best.second) == ("f1", "f2")
    assert best.second_changes_first == best.strength
    assert best.first_changes_second == 0


def test_an_additive_model_has_no_interactions() -> None:
    model, _ = explained_model(2, n_experts=1)
    assert np.all(model.interaction_strength().strength == 0)


def test_the_strongest_pairs_come_first() -> None:
    model, _ = explained_model(3, n_features=5, n_outputs=3)
    found = model.interaction_strength()
    pairs = found.top(100)
    assert len(pairs) == 10
    assert [pair.strength for pair in pairs] == sorted((pair.strength for pair in pairs), reverse=True)
    spread = float(np.sqrt(np.mean(found.score_spread**2)))
    assert pairs[0].relative == pytest.approx(pairs[0].strength / spread)
    alone = found.top(1, output="class 1")[0]
    assert alone.relative == pytest.approx(alone.strength / found.score_spread[1])
    assert found.top(0) == ()
    with pytest.raises(UserError, match=r"output must be one of \['class 0', 'class 1', 'class 2'\]; got 'x'"):
        found.matrix("x")


def test_it_survives_json_and_becomes_a_frame() -> None:
    model, _ = explained_model(3, n_features=5)
    found = model.interaction_strength()
    again = InteractionStrength.from_json(found.to_json())
    np.testing.assert_array_equal(again.strength, found.strength)
    frame = found.to_frame("polars")
    assert len(frame) == 25
    np.testing.assert_array_equal(frame["strength"].to_numpy().reshape(5, 5, 1), found.strength)


def test_wide_tables_are_measured_on_fewer_rows() -> None:
    random = np.random.default_rng(0)
    model = make_model(random, n_features=280, n_experts=2, gate="low-rank", dtype=np.float32)
    found = with_statistics(model, make_table(random, model.schema, 200)).top_interactions(5)
    assert len(found) == 5
