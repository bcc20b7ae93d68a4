import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae.encoding import Columns
from nae.errors import UserError
from nae.explanation import EffectCaps, caps
from nae.tables import TableModel
from tests.laws.drawn import models_with_tables
from tests.laws.models import make_model, make_table


@settings(max_examples=40)
@given(models_with_tables(may_clamp=True), st.integers(0, 9))
def test_no_contribution_ever_exceeds_its_cap(drawn: tuple[TableModel, Columns], seed: int) -> None:
    model, table = drawn
    values = model.contributions(table).values.reshape(-1, model.n_features, model.n_outputs)
    caps = model.effect_caps_.caps
    for i, name in enumerate(model.feature_names):
        own = [cap for cap in caps if cap.feature == name]
        if model.classes:
            gaps = values[:, i, :, None] - values[:, i, None, :]
            assert np.all(gaps <= own[0].adds)
            continue
        for o, cap in enumerate(own):
            assert np.all(values[:, i, o] <= cap.adds)
            assert np.all(values[:, i, o] >= cap.takes)


@pytest.mark.parametrize("routing", ["softmax", "equal"])
def test_a_cap_is_reached_by_the_right_gate(routing: str) -> None:
    # A very loud bias sends every row to the expert that reaches the cap.
    random = np.random.default_rng(0)
    model = make_model(random, n_features=1, n_experts=3, n_active=1, routing=routing, scale=0.0)
    experts = model.experts[:, :, 0, 0]
    slot, best = np.unravel_index(experts.argmax(), experts.shape)
    model.gate.bias[best] = 1e3
    values = model.contributions(make_table(random, model.schema, 500)).values
    knot = model.schema.features[0].knots[slot] if slot < model.schema.features[0].n_values else None
    reached = model.contributions(Columns((np.array([np.nan if knot is None else knot]),), model.schema.names)).values
    cap = model.effect_caps_["f0"]
    assert max(values.max(), reached.max()) <= cap.adds
    assert cap.adds == pytest.approx(experts.max(), rel=1e-12)


def test_the_cap_of_classes_is_that_of_any_two_of_them() -> None:
    model = make_model(np.random.default_rng(1), n_features=2, n_outputs=3)
    cap = model.effect_caps_["f1"]
    experts = model.experts[model.schema.slots(1), :, :, 0]
    gaps = experts[:, :, :, None] - experts[:, :, None, :]
    assert cap.adds == pytest.approx(gaps.max())
    _, _, first, second = np.unravel_index(gaps.argmax(), gaps.shape)
    assert cap.outputs == (f"class {first}", f"class {second}")
    assert cap.takes == -cap.adds
    assert "moves the log-odds of any two classes by at most" in cap.sentence


def test_the_sentence_never_promises_too_much() -> None:
    model = make_model(np.random.default_rng(2), n_features=3)
    for cap in model.effect_caps_.caps:
        words = cap.sentence.rstrip(".").split("at most ")
        assert float(words[1].split()[0]) >= cap.adds
        assert float(words[2].split()[0]) >= -cap.takes
        assert cap.adds >= 0 >= cap.takes


def test_sentences_frames_and_json() -> None:
    model = make_model(np.random.default_rng(3), n_features=3, n_outputs=2)
    caps = model.effect_caps_
    assert len(caps) == 6
    assert caps.text.count("\n") == 5
    assert caps.text.startswith("Whatever the input, f0 raises the ")
    assert EffectCaps.from_json(caps.to_json()).caps == caps.caps
    assert list(caps.to_frame("polars")["output"][:2]) == ["class 0", "class 1"]
    with pytest.raises(UserError, match="No feature is called 'g'"):
        caps["g"]


@pytest.mark.parametrize("routing", ["softmax", "equal"])
@pytest.mark.parametrize("seed", range(3))
def test_the_cap_of_many_classes_is_the_largest_of_all_pairs(routing: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    model = make_model(
        random, n_features=2, n_outputs=12, n_experts=3, n_active=2, routing=routing, n_members=2, link="softmax"
    )
    for i, cap in enumerate(model.effect_caps_.caps):
        experts = model.experts[model.schema.slots(i)].astype(np.float64)
        gaps = experts[:, :, :, None] - experts[:, :, None]  # (slot, expert, class, class, member)
        largest = model.routing.bounds(gaps, axis=1)[1].mean(axis=-1).max(axis=0)
        assert cap.adds == pytest.approx(largest.max(), rel=1e-4)
        pair = tuple(model.outputs[j] for j in np.unravel_index(largest.argmax(), largest.shape))
        assert cap.outputs == pair


def test_the_caps_of_thousands_of_classes_look_at_few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    model = make_model(random, n_features=1, n_outputs=5000, n_experts=2, n_active=1, link="softmax")
    sizes, extremes = [], caps._extremes

    def counted(model: TableModel, experts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(experts.shape[2])
        return extremes(model, experts)

    monkeypatch.setattr(caps, "_extremes", counted)
    assert len(model.effect_caps_) == 1
    assert sum(sizes) < 50 * 5000  # of 5000 * 5000
