"""What explanations print, in a terminal and in a notebook."""

import numpy as np
import pytest

from nae._words import counted, sized
from nae.explanation.caps import effect_caps
from nae.explanation.interaction import explain_interaction
from nae.explanation.local import explain_local
from nae.explanation.printed import digest
from nae.explanation.shapes import explain_global
from nae.explanation.strength import interaction_strength
from tests.explanation.examples import explained_model


def test_a_table_is_aligned_and_its_numbers_have_the_same_decimals():
    text = digest("Title", {"name": ["a", "longer"], "size": [12.3456, -0.00004]}, "nowhere")
    assert text == "Title\n  name     size\n  a       12.35\n  longer   0.00"


def test_numbers_of_all_sizes_stay_readable():
    def shown(*values: float) -> list[str]:
        return [line.strip() for line in digest("", {"n": list(values)}, "").splitlines()[2:]]

    assert shown(1234567.8, 1.5) == ["1,234,568", "2"]
    assert shown(2e-9, 0.0) == ["2e-09", "0"]
    assert shown(1e12, np.nan) == ["1e+12", "nan"]
    assert shown(0.0) == ["0"]


def test_a_long_table_ends_after_ten_lines_and_says_where_the_rest_is():
    lines = digest("Title", {"n": [float(i) for i in range(1234)]}, "to_frame()").splitlines()
    assert len(lines) == 13
    assert lines[-1] == "  … 1,224 more: to_frame()"


def test_nouns_follow_their_number():
    assert [counted(n, "row") for n in (0, 1, 1000)] == ["0 rows", "1 row", "1,000 rows"]
    assert [sized(n) for n in (1, 9_600, 99_000, 140_000, 2_500_000_000)] == [
        "1 kB",
        "10 kB",
        "99 kB",
        "0.1 MB",
        "2,500.0 MB",
    ]


def test_a_global_explanation_prints_its_features_by_importance():
    model, _ = explained_model()
    explanation = explain_global(model)
    lines = repr(explanation).splitlines()
    assert lines[0].startswith(f"GlobalExplanation({model.n_features} features, 1 output, weighted additivity 0.")
    assert [line.split()[0] for line in lines[2:]] == [shape.name for shape in explanation.ranked()]
    assert repr(explanation.features[0]).startswith(f"FeatureShape({model.feature_names[0]!r}, ")


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_row_prints_its_contributions_the_largest_first(n_outputs: int):
    model, rows = explained_model(n_outputs=n_outputs)
    explanation = explain_local(model, rows)
    assert repr(explanation).startswith(f"LocalExplanation(12 rows, {model.n_features} features, ")
    lines = repr(explanation[3]).splitlines()
    assert lines[0].startswith("LocalExplanation(1 row, ")
    output = int(explanation.prediction[3].argmax())  # of several classes, the most probable one is shown
    assert f"score {explanation.score[3, output]:.4g}, intercept" in lines[0]
    shown = [line.split()[0] for line in lines[2:]]
    order = np.argsort(-np.abs(explanation.values[3, :, output]))
    assert shown == [model.feature_names[i] for i in order]
    assert repr(explanation[[]]).startswith("LocalExplanation(0 rows")


def test_interactions_and_caps_print_in_few_lines():
    model, rows = explained_model()
    first, second = model.feature_names[:2]
    pair = repr(explain_interaction(model, (first, second)))
    assert pair.startswith(f"InteractionExplanation({first} × {second}, ")
    assert pair.endswith("1 output, isolation 'mean', exact)")
    strength = interaction_strength(model)
    assert strength.top(1)[0].first in repr(strength).splitlines()[2]
    caps = effect_caps(model)
    assert repr(caps).splitlines()[1].strip() == caps.text.splitlines()[0]
    assert repr(model.contributions(rows)).startswith(f"Contributions(12 rows, {model.n_features} features; ")


def test_many_caps_are_cut():
    model, _ = explained_model(n_features=13)
    lines = repr(effect_caps(model)).splitlines()
    assert len(lines) == 12
    assert lines[-1] == f"  … {model.n_features - 10} more: text, to_frame()"
