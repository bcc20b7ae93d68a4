import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from nae import plots
from nae.errors import ConfigError, MissingDependencyError, UserError
from nae.plots import FrontierPoint
from nae.plots.layouts.bars import lay_out_waterfall
from nae.quality import Reliability
from nae.tables import TableModel
from nae.training.history import Epoch, History
from tests.plots.explained import NAMES, explained, global_of, interaction_of, local_of, model_of, rows_of, strength_of

INCOME, ROOMS, NEW, FORTY, LONG = NAMES
HISTORY = History([Epoch(1, 2.0, 1.5, None, 0.5), Epoch(2, 1.0, 1.2, 0.8, 0.25)], best_epoch=2)
CURVE = Reliability(
    label="yes $b$",
    n_rows=90,
    predicted=np.array([0.1, 0.5]),
    actual=np.array([0.2, 0.5]),
    lower=np.array([0.15, 0.4]),
    upper=np.array([0.3, 0.6]),
    rows=np.array([45, 45]),
    error=0.05,
    error_by_chance=0.02,
    p_value=0.01,
    slope=0.9,
    slope_interval=(0.8, 1.0),
    shift=0.0,
    shift_interval=(-0.1, 0.1),
)
POINTS = [FrontierPoint(0.5, 0.43, 0.01, "a $b$"), FrontierPoint(0.9, 0.45, is_chosen=True)]

SINGLE: dict[str, Any] = {
    "number": lambda **to: plots.shape(global_of(), INCOME, **to),
    "number without rows": lambda **to: plots.shape(explained(), INCOME, **to),
    "few values": lambda **to: plots.shape(explained(), ROOMS, **to),
    "boolean": lambda **to: plots.shape(global_of(), NEW, **to),
    "forty levels": lambda **to: plots.shape(explained(), FORTY, **to),
    "levels with rows": lambda **to: plots.shape(global_of(), LONG, **to),
    "a class": lambda **to: plots.shape(explained(3), ROOMS, output="class 1", **to),
    "importance": lambda **to: plots.importance(explained(), **to),
    "importance of classes": lambda **to: plots.importance(explained(3), max_features=2, **to),
    "waterfall": lambda **to: plots.waterfall(local_of(), 6, **to),
    "waterfall of classes": lambda **to: plots.waterfall(local_of(3), 0, max_features=3, **to),
    "map": lambda **to: plots.pair(interaction_of(INCOME, FORTY, has_rows=True), **to),
    "map of levels": lambda **to: plots.pair(interaction_of(LONG, FORTY), **to),
    "small map": lambda **to: plots.pair(interaction_of(LONG, NEW), effect="pure", **to),
    "lines": lambda **to: plots.pair(interaction_of(ROOMS, LONG), **to),
    "matrix": lambda **to: plots.interaction_matrix(strength_of(), **to),
    "frontier": lambda **to: plots.frontier(POINTS, score_label="RMSE", **to),
    "training": lambda **to: plots.training(HISTORY, **to),
    "reliability": lambda **to: plots.reliability(CURVE, **to),
}
PAGES: dict[str, Any] = {
    "shapes": lambda **to: plots.shapes(global_of(), title="All", **to),
    "panels": lambda **to: plots.three_way(interaction_of(INCOME, FORTY, ROOMS, has_rows=True), title="Three", **to),
    "compare": lambda **to: plots.compare(explained(), explained(), names=("old <b>", "new $"), **to),
}


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    mpl.use("Agg")
    before = dict(mpl.rcParams)
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
    assert dict(mpl.rcParams) == before  # nobody's settings were touched


@pytest.mark.parametrize("name", SINGLE)
def test_a_picture_is_drawn_on_the_given_axes_and_returns_them(name: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    assert SINGLE[name](ax=ax) is ax
    figure.canvas.draw()
    assert ax.get_title(loc="left")


@pytest.mark.parametrize("name", [*SINGLE, *PAGES])
def test_a_picture_makes_its_own_figure(name: str) -> None:
    made = (SINGLE | PAGES)[name]()
    figure = made if name in PAGES else made.figure
    figure.canvas.draw()  # no name is read as mathematics, no glyph or room is missing: warnings are errors
    assert len(figure.axes) >= 1


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_on_the_given_figure(name: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained", figsize=(12, 12))
    assert PAGES[name](figure=figure) is figure


@pytest.mark.parametrize("name", [*SINGLE, *PAGES])
def test_plotly_draws_the_same_layout(name: str) -> None:
    figure = (SINGLE | PAGES)[name](backend="plotly")
    content = json.loads(figure.to_json())
    assert content["data"]
    text = figure.to_json()
    assert "<b>home</b>" not in text  # a name is shown, not obeyed
    assert "<i>yes</i>" not in text
    assert "old <b>" not in text


def test_both_backends_draw_the_same_curve() -> None:
    from matplotlib.figure import Figure

    ax = plots.shape(explained(), INCOME, ax=Figure().add_subplot())
    mean = explained().feature(INCOME).mean[:-2, 0]
    drawn = [line for line in ax.get_lines() if len(line.get_ydata()) == len(mean)]
    assert any(np.array_equal(line.get_ydata(), mean) for line in drawn)
    figure = plots.shape(explained(), INCOME, backend="plotly")
    curve = next(trace for trace in figure.data if trace.name == "mean effect")
    np.testing.assert_array_equal(curve.y, mean)


def test_both_backends_draw_the_whole_own_effect_beside_what_the_context_took_back() -> None:
    from matplotlib.figure import Figure

    layout = lay_out_waterfall(local_of(), 6)
    parts = [
        (round(place + p.middle, 9), p.start, p.end) for place, s in enumerate(layout.steps) for p in layout.parts(s)
    ]
    assert any(
        (step.own_end - step.start) * (step.end - step.own_end) < 0 for step in layout.steps
    )  # some context works against the own effect
    ax = plots.waterfall(local_of(), 6, ax=Figure().add_subplot())
    drawn = [
        (round(bar.get_y() + bar.get_height() / 2, 9), bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches
    ]
    assert sorted(drawn) == [pytest.approx(part) for part in sorted(parts)]
    bars = [trace for trace in plots.waterfall(local_of(), 6, backend="plotly").data if trace.type == "bar"]
    drawn = [(round(y, 9), base, base + x) for bar in bars for y, base, x in zip(bar.y, bar.base, bar.x, strict=True)]
    assert sorted(drawn) == [pytest.approx(part) for part in sorted(parts)]


def legend_of(name: str, backend: str, model: TableModel) -> set[str]:
    """Return what the legend of a picture of a model names."""
    rows = rows_of().take(np.arange(390, 400))
    draw: Any = {
        "shape": lambda: plots.shape(model.explain_global(), INCOME, backend=backend),
        "levels": lambda: plots.shape(model.explain_global(), FORTY, backend=backend),
        "shapes": lambda: plots.shapes(model.explain_global(), backend=backend),
        "importance": lambda: plots.importance(model.explain_global(), backend=backend),
        "waterfall": lambda: plots.waterfall(model.explain_local(rows), backend=backend),
    }[name]
    made = draw()
    if backend == "plotly":
        return {trace.name for trace in made.data if trace.showlegend is not False}
    legend = made.legends[0] if name == "shapes" else made.get_legend()
    return {text.get_text() for text in legend.get_texts()}


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("shape", {"guaranteed bounds", "90 % of rows"}),
        ("levels", {"guaranteed bounds", "90 % of rows"}),
        ("shapes", {"guaranteed bounds", "90 % of rows"}),
        ("importance", {"context decides"}),
        ("waterfall", {"context raises", "context lowers", "because of context", "guaranteed bounds"}),
    ],
)
def test_a_legend_names_what_an_additive_model_has(name: str, absent: set[str], backend: str) -> None:
    additive, usual = (legend_of(name, backend, model_of(n_experts=n)) for n in (1, 3))
    assert additive
    assert not additive & absent
    assert usual & absent


def test_nothing_is_shown_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt
    from plotly.basedatatypes import BaseFigure

    calls: list[str] = []
    monkeypatch.setattr(plt, "show", lambda *_, **__: calls.append("matplotlib"))
    monkeypatch.setattr(BaseFigure, "show", lambda *_, **__: calls.append("plotly"))
    for backend in ("matplotlib", "plotly"):
        plots.importance(explained(), backend=backend)
        plots.shapes(explained(), backend=backend)
    assert calls == []
    plt.show()
    BaseFigure().show()
    assert calls == ["matplotlib", "plotly"]  # a call would have been seen


def test_what_is_wrong_with_a_call_is_said() -> None:
    from matplotlib.figure import Figure

    with pytest.raises(ConfigError, match="backend must be 'matplotlib' or 'plotly'; got 'bokeh'"):
        plots.importance(explained(), backend="bokeh")
    with pytest.raises(ConfigError, match="plotly makes a figure of its own; leave out ax="):
        plots.importance(explained(), backend="plotly", ax=Figure().add_subplot())


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda model: plots.shape(model, "income"), r"takes GlobalExplanation; got .* model's explain_global\(\)"),
        (plots.shapes, "takes GlobalExplanation"),
        (plots.importance, "takes GlobalExplanation"),
        (lambda model: plots.compare(explained(), model), "takes GlobalExplanation"),
        (lambda _: plots.waterfall(explained()), r"takes LocalExplanation; got GlobalExplanation\. Use .*_local"),
        (plots.pair, r"takes InteractionExplanation; .* explain_interaction\(first, second\)"),
        (plots.three_way, r"takes InteractionExplanation; .* explain_interaction\(first, second, third\)"),
        (plots.interaction_matrix, r"takes InteractionStrength; .* interaction_strength\(\)"),
    ],
)
def test_a_model_is_no_explanation_and_the_error_says_where_to_get_one(draw: Any, match: str) -> None:
    with pytest.raises(UserError, match=match):
        draw(model_of())


@pytest.mark.parametrize("name", [*SINGLE, *PAGES])
@pytest.mark.parametrize(("backend", "extra"), [("matplotlib", "plots"), ("plotly", "plotly")])
def test_a_missing_library_is_an_error_with_the_pip_line(
    name: str, backend: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [one for one in sys.modules if one.partition(".")[0] == backend]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, backend, None)  # as if it were not installed
    match = rf"{backend} is needed .*; pip install 'neural-additive-experts\[{extra}\]'"
    with pytest.raises(MissingDependencyError, match=match):
        (SINGLE | PAGES)[name](backend=backend)


def test_importing_the_plots_loads_no_drawing_library() -> None:
    code = "import nae.plots, sys; print('matplotlib' in sys.modules, 'plotly' in sys.modules, 'torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False", "False"]


def test_curves_join_what_was_measured_every_few_epochs() -> None:
    epochs = [Epoch(i, 1.0 / i, 2.0 / i if i % 3 == 0 else None, 0.9 if i % 3 == 0 else None, i) for i in range(1, 10)]
    history = History(epochs, best_epoch=6)
    ax = plots.training(history)
    found = {line.get_label(): line.get_xdata() for axes in ax.figure.axes for line in axes.lines}
    assert list(found["validation loss"]) == list(found["additivity (right)"]) == [3, 6, 9]
    curves = {trace.name: trace.x for trace in plots.training(history, backend="plotly").data}
    assert list(curves["validation loss"]) == list(curves["additivity (right)"]) == [3, 6, 9]
    assert len(curves["training loss"]) == 9
