import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nae.explanation import GlobalExplanation
from tests.plots.explained import NAMES, explained, global_of, local_of

interpret = pytest.importorskip("interpret")
# interpret and what it draws with use calls that plotly and IPython call old.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let interpret.show render its own inline page, and catch the HTML it hands to the notebook."""
    from interpret.provider import InlineProvider
    from IPython import display

    pages: list[str] = []
    monkeypatch.setattr(display, "display_html", lambda html, **_: pages.append(html))
    monkeypatch.setattr(display, "display", lambda thing, **_: pages.append(getattr(thing, "data", "")))
    before = interpret.get_visualize_provider()
    interpret.set_visualize_provider(InlineProvider())
    yield pages
    interpret.set_visualize_provider(before)


@pytest.mark.parametrize("explanation", [explained(), global_of(3), local_of(), local_of(3)])
def test_interpret_shows_our_explanations(explanation: Any, shown: list[str]) -> None:
    interpret.show(explanation)
    page = "".join(shown)
    assert "RenderApp" in page
    assert explanation.name in page


@pytest.mark.parametrize(
    ("explanation", "key", "words"),
    [
        (explained(), None, "standard deviation of the contribution"),
        (explained(), 0, "guaranteed bounds"),
        (explained(3), 1, "class 2"),
        (local_of(), 3, "guaranteed bounds"),
    ],
)
def test_interpret_writes_our_explanations_to_a_page(
    explanation: Any, key: int | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    interpret.preserve(explanation, key, file_name=str(page), auto_open=False)
    text = page.read_text()
    assert words in text
    assert len(text) > 10_000


def test_an_entry_can_be_chosen_by_name(shown: list[str]) -> None:
    interpret.show(explained(), key=NAMES[1])
    assert shown


def test_the_selector_is_the_frame_this_version_wants() -> None:
    selector = explained().selector
    assert isinstance(selector, pd.DataFrame)
    assert list(selector["Name"]) == list(NAMES)
    assert list(selector["Type"]) == ["continuous", "continuous", "categorical", "categorical", "categorical"]
    rows = local_of().selector
    assert len(rows) == 10
    np.testing.assert_allclose(rows["Predicted"], local_of().prediction[:, 0])
    np.testing.assert_allclose(rows["Resid"], np.arange(10.0) - local_of().prediction[:, 0])


def test_without_interpret_the_selector_is_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nae.interop.interpret.find_spec", lambda name: None)
    selector = explained().selector
    assert selector["columns"][0] == "Name"
    assert selector["data"][1]["Name"] == NAMES[1]


def test_interprets_own_plots_take_our_bounds_as_their_band() -> None:
    from interpret.visual.plot import plot_bar, plot_continuous_bar

    number = explained().data(0)
    assert len(number["names"]) == len(number["scores"]) + 1  # borders and steps
    figure = plot_continuous_bar(number)
    band = {
        trace.name: np.asarray(trace.y)[:-1] for trace in figure.data if trace.name in ("Upper Bound", "Lower Bound")
    }
    np.testing.assert_allclose(band["Upper Bound"], explained().features[0].upper[:-2, 0])
    np.testing.assert_allclose(band["Lower Bound"], explained().features[0].lower[:-2, 0])
    assert plot_bar(explained().data(3)) is not None
    assert plot_continuous_bar(explained(3).data(0), multiclass=True, show_error=False) is not None


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_interprets_own_explanation_draws_our_dictionaries(n_outputs: int) -> None:
    from interpret.api.templates import FeatureValueExplanation

    local = local_of(n_outputs)
    theirs = FeatureValueExplanation("local", local.data(-1), feature_names=list(NAMES), name="x", selector=None)
    assert theirs.visualize(2) is not None
    overview = FeatureValueExplanation("global", explained(n_outputs).data(-1), feature_names=list(NAMES), name="x")
    assert overview.visualize() is not None


def test_the_dictionary_of_a_row_sums_to_its_score() -> None:
    local = local_of()
    one = local.data(4)
    assert sum(one["scores"]) + one["extra"]["scores"][0] == pytest.approx(local.score[4, 0])
    assert one["perf"]["actual"] == 4.0
    assert local.data() is None
    assert local.visualize() is None


def test_classes_are_told_by_position() -> None:
    local = local_of(3)
    perf = local.data(0)["perf"]
    assert perf["is_classification"]
    assert perf["predicted"] == int(local.score[0].argmax())
    assert np.isnan(perf["actual"])  # 0.0 is none of the classes
    assert local.data(0)["meta"]["label_names"] == list(local.classes)


def test_the_models_are_registered_as_extensions() -> None:
    group = {point.name: point for point in entry_points(group="interpret_ext_glassbox")}
    assert {"NAEClassifier", "NAERegressor"} <= set(group)
    import interpret.ext.glassbox as extensions

    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.uniform(size=80), "b": random.uniform(size=80)})
    model = extensions.NAEClassifier(n_members=1, max_epochs=3, random_state=0)
    model.fit(X, np.where(X["a"] > 0.5, "high", "low"))
    assert set(model.predict(X)) <= {"high", "low"}
    assert model.predict_proba(X).shape == (80, 2)
    assert isinstance(model.explain_global("mine"), GlobalExplanation)
    assert model.explain_global("mine").name == "mine"
    assert len(model.explain_local(X[:2], ["high", "low"])) == 2


def test_loading_the_extensions_loads_no_torch() -> None:
    code = "import interpret.ext.glassbox as g, sys; print(hasattr(g, 'NAERegressor'), 'torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]
