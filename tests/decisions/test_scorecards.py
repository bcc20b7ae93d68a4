import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae._typing import Array
from nae.decisions import Relativities, Scorecard
from nae.decisions.scorecards.groups import edge_between
from nae.decisions.scorecards.scales import FactorScale, PointScale
from nae.decisions.scorecards.segments import best_steps, direction_of, in_order
from nae.encoding import Category, Columns, Number
from nae.errors import ConfigError, UserError
from nae.explanation import with_statistics
from nae.tables import TableModel
from tests.explanation.examples import remembering
from tests.laws.models import make_model, make_table

FEATURES = (
    Number("age", np.linspace(18.0, 90.0, 25)),
    Category("town", ("Ulm", "Köln", "=1+1", "Jena"), ("rare 0", "rare 1"), has_missing=True),
    Number("children", np.array([0.0, 1.0, 2.0, 5.0]), integral=True),
    Number("owner", np.array([0.0, 1.0]), is_boolean=True, integral=True),
    Number("nothing", np.zeros(1), has_missing=True),
)


def model_of(link: str = "logit", *, seed: int = 0, **shape: Any) -> TableModel:
    model = make_model(np.random.default_rng(seed), features=FEATURES, link=link, **shape)
    return remembering(model, seed, n_rows=400)


def rows_of(model: TableModel, n_rows: int = 3000) -> Columns:
    """Return random rows; columns of integers and booleans hold such."""
    columns = make_table(np.random.default_rng(9), model.schema, n_rows)
    arrays = list(columns.arrays)
    for at in (2, 3):
        arrays[at] = np.round(np.where(np.isfinite(arrays[at]), np.clip(arrays[at], -5, 9), np.nan))
    return Columns(tuple(arrays), columns.names)


def squares(values: Array, weights: Array, starts: Any) -> float:
    edges = [*starts, len(values)]
    parts = [(values[a:b], weights[a:b]) for a, b in itertools.pairwise(edges)]
    return sum(float(w @ (v - np.average(v, weights=w)) ** 2) for v, w in parts)


# --- the best steps


@pytest.mark.parametrize("seed", range(4))
def test_no_other_steps_fit_better(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, weights = random.normal(size=9), random.uniform(0.1, 3, 9)
    for limit in (1, 2, 3, 9):
        found = best_steps(values, weights, limit)
        cuts = itertools.combinations(range(1, 9), limit - 1)
        best = min(squares(values, weights, (0, *cut)) for cut in cuts)
        assert len(found) <= limit
        assert squares(values, weights, found) <= best + 1e-9


def test_equal_values_take_one_step() -> None:
    assert best_steps(np.ones(5), np.ones(5), 4).tolist() == [0]
    assert best_steps(np.array([1.0, 2.0, 2.0]), np.ones(3), 3).tolist() == [0, 1]


@pytest.mark.parametrize("direction", [1, -1])
def test_the_closest_monotone_curve_is_monotone_and_no_monotone_curve_is_closer(direction: int) -> None:
    random = np.random.default_rng(0)
    values, weights = random.normal(size=30), random.uniform(0.1, 3, 30)
    found = in_order(values, weights, direction)
    loss = weights @ (values - found) ** 2
    assert np.all(direction * np.diff(found) >= 0)
    for _ in range(200):
        other = direction * np.sort(direction * (found + 0.1 * random.normal(size=30)))
        assert weights @ (values - other) ** 2 >= loss - 1e-9


def test_a_direction_looks_at_values_with_rows_only() -> None:
    weights = np.array([1.0, 0.0, 1.0, 2.0])
    assert direction_of(np.array([1.0, 9.0, 2.0, 3.0]), weights) == 1
    assert direction_of(np.array([3.0, 9.0, 2.0, 1.0]), weights) == -1
    assert direction_of(np.array([1.0, 9.0, 1.0, 1.0]), weights) == 0
    assert direction_of(np.array([1.0, 0.0, 2.0, 1.0]), weights) == 0


def test_an_edge_is_short_and_between_the_knots() -> None:
    assert edge_between(0.0, 1.0, False) == 0.5
    assert edge_between(1e-9, 1000.0, False) == 500
    assert edge_between(2.0, 5.0, True) == 3.5
    for low, high in [(0.1, 0.1 + 1e-15), (-1e300, 1e300), (1e22, 1.5e22)]:
        assert low < edge_between(low, high, False) <= high


# --- the law: points stand for the model


@pytest.mark.parametrize("shape", [{"n_experts": 1}, {"n_members": 2}, {"is_clamped": True, "gate": "deep"}])
def test_no_input_differs_by_more_than_the_table_says(shape: dict[str, Any]) -> None:
    model = model_of(**shape)
    rows = rows_of(model)
    for limit in (2, 5, None):
        card = model.scorecard(rows, max_bins=limit)
        off = card.as_score(card.score(rows)) - model.decision_function(rows)
        assert np.abs(off).max() <= card.loss.largest
        assert card.loss.measured is not None
        assert card.loss.measured.largest == np.abs(off).max()
        assert card.loss.measured.rms == pytest.approx(np.sqrt(np.mean(off**2)))


@pytest.mark.parametrize("shape", [{"n_experts": 1}, {"n_members": 2}, {"is_clamped": True, "routing": "equal"}])
def test_no_contribution_leaves_the_range_of_its_bin(shape: dict[str, Any]) -> None:
    model = model_of(**shape)
    rows = rows_of(model)
    values = model.contributions(rows).values
    for reference in ("average", "lowest", "common"):
        for i, feature in enumerate(model.scorecard(max_bins=4, reference=reference).features):
            bins = feature.find(rows.arrays[i])
            lower, upper = (np.array([getattr(one, end) for one in feature.bins])[bins] for end in ("lower", "upper"))
            assert np.all(values[:, i] - feature.shift >= lower - 1e-9)
            assert np.all(values[:, i] - feature.shift <= upper + 1e-9)


@pytest.mark.parametrize("link", ["logit", "log"])
def test_a_table_of_an_additive_model_on_its_knots_is_the_model(link: str) -> None:
    model = model_of(link, n_experts=1)
    values = {one.name: getattr(one, "knots", getattr(one, "levels", ())) for one in FEATURES[:4]}
    table = {name: [known[i % len(known)] for i in range(25)] for name, known in values.items()}
    table["nothing"] = [None] * 25
    make = model.scorecard if link == "logit" else model.relativities
    card = make(table, max_bins=None, decimals=8)
    assert card.as_score(card.score(table)) == pytest.approx(model.decision_function(table), abs=2e-5)
    assert card.loss.binning < 1e-12
    assert card.loss.context == 0
    assert [card[name].is_exact for name in ("town", "children", "owner")] == [True, False, True]


def test_a_category_and_integers_of_an_additive_model_are_exact() -> None:
    features = (FEATURES[1], Number("n", np.arange(4.0), integral=True), FEATURES[3])
    model = remembering(make_model(np.random.default_rng(0), features=features, n_experts=1, link="logit"))
    card = model.scorecard(decimals=6)
    assert all(one.is_exact for one in card.features)
    rows = {
        "town": ["Ulm", "rare 1", "never seen", None],
        "n": [0.0, 3.0, None, 99.0],
        "owner": [True, False, True, None],
    }
    assert card.as_score(card.score(rows)) == pytest.approx(model.decision_function(rows), abs=1e-5)


def test_the_loss_by_binning_is_that_of_the_training_rows() -> None:
    """Rows on the knots: what is said from the statistics is what the rows show."""
    random = np.random.default_rng(3)
    features = (Number("a", np.arange(40.0)), Number("b", np.arange(7.0)))
    model = make_model(random, features=features, n_experts=3, link="logit")
    rows = {"a": random.integers(0, 40, 4000).astype(float), "b": random.integers(0, 7, 4000).astype(float)}
    model = with_statistics(model, rows)
    card = model.scorecard(rows, max_bins=5, decimals=6)
    for i, feature in enumerate(card.features):
        effects = np.array([one.effect for one in feature.bins])[feature.find(rows["ab"[i]])]
        off = model.contributions(rows).values[:, i] - effects
        assert np.hypot(feature.binning, feature.context) == pytest.approx(off.std(), rel=0.02)
    assert card.loss.measured.rms <= card.loss.binning + card.loss.context + 1e-6


# --- scales


def test_points_double_the_odds() -> None:
    model = model_of()
    card = model.scorecard(base=500, points_to_double=40, odds=3)
    assert card.probability(500) == pytest.approx(0.75)
    assert card.probability(540) == pytest.approx(6 / 7)
    assert np.all(card.score(rows_of(model)) % 1 == 0)
    assert card.probability([-1e9, 1e9]).tolist() == [0, 1]


def test_points_of_the_other_class_are_mirrored() -> None:
    model = model_of()
    yes, no = model.scorecard(decimals=3), model.for_class("no").scorecard(decimals=3)
    rows = rows_of(model, 50)
    assert (yes.output, no.output) == ("yes", "no")
    assert yes.score(rows) - 600 == pytest.approx(600 - no.score(rows), abs=0.01)


@pytest.mark.parametrize("reference", ["average", "lowest", "common"])
def test_the_reference_moves_points_to_the_base_and_changes_no_total(reference: Any) -> None:
    model = model_of()
    rows = rows_of(model, 50)
    card, plain = model.scorecard(reference=reference, decimals=5), model.scorecard(decimals=5)
    assert card.score(rows) == pytest.approx(plain.score(rows), abs=1e-3)
    for feature in card.features:
        shown, shares = np.array([one.shown for one in feature.bins]), [one.share for one in feature.bins]
        if reference == "lowest":
            assert shown.min() == 0
        elif reference == "common":
            assert shown[np.argmax(shares)] == 0
        else:
            assert shown @ shares == pytest.approx(0, abs=1e-2)


def test_factors_multiply_to_the_prediction() -> None:
    model = model_of("log", n_experts=1, scale=0.1)
    card = model.relativities(max_bins=None, decimals=9)
    town = {"age": [18.0], "town": ["Ulm"], "children": [1], "owner": [True], "nothing": [None]}
    assert card.score(town) == pytest.approx(model.predict(town), rel=1e-4)
    product = card.base
    for feature in card.features:
        product *= feature.bins[int(feature.find(np.array(town[feature.name], dtype=object))[0])].shown
    assert card.score(town)[0] == pytest.approx(product)


def test_a_factor_is_never_zero_and_a_range_is_rounded_outward() -> None:
    assert FactorScale(3).shown(np.array([-50.0]))[0] == 0.001
    assert PointScale(1.0, 0).outward(-0.01, 1.23) == (-0.1, 1.3)
    assert str(PointScale(1.0, 0).shown(np.array([-0.2]))[0]) == "0.0"


def test_neighbours_with_the_same_points_are_one_bin() -> None:
    coarse = model_of(n_experts=1).scorecard(points_to_double=0.1, max_bins=None)
    for feature in coarse.features:
        values = [one.shown for one in feature.bins if one.role == "value"]
        assert all(one != other for one, other in itertools.pairwise(values))


# --- direction


def test_points_of_a_promised_direction_are_monotone() -> None:
    model = model_of().with_training(constraints={"monotone": {"age": "-", "children": "+"}})
    card = model.scorecard(max_bins=6)
    for name, sign in (("age", -1), ("children", 1)):
        points = [one.shown for one in card[name].bins if one.role == "value"]
        assert card[name].direction == sign
        assert np.all(sign * np.diff(points) >= 0)
    mirrored = model.for_class("no").scorecard(max_bins=6)
    assert mirrored["age"].direction == 1


def test_points_of_a_monotone_effect_are_monotone() -> None:
    features = (Number("a", np.arange(30.0)),)
    model = make_model(np.random.default_rng(0), features=features, n_experts=1, link="logit")
    model.experts[:30, 0, 0, 0] = np.sort(model.experts[:30, 0, 0, 0])
    card = remembering(model).scorecard(max_bins=4)
    assert card["a"].direction == 1
    assert np.all(np.diff([one.shown for one in card["a"].bins[:-1]]) > 0)


# --- what is shown


def test_labels_say_which_values_a_bin_holds() -> None:
    card = model_of().scorecard(max_bins=3)
    assert [one.label for one in card["owner"].bins] == ["False", "True", "missing"]
    assert card["age"].bins[0].label.startswith("below ")
    assert card["age"].bins[-2].label.endswith(" and more")
    assert {one.role for one in card["town"].bins} == {"value", "missing", "unseen"}
    assert [one.label for one in card["nothing"].bins] == ["missing", "unseen"]
    assert sorted(level for one in card["town"].bins for level in one.levels) == sorted(
        (*FEATURES[1].levels, *FEATURES[1].rare)
    )


def test_integers_have_labels_of_integers() -> None:
    features = (Number("n", np.array([0.0, 1.0, 4.0, 9.0]), integral=True),)
    model = remembering(make_model(np.random.default_rng(0), features=features, link="logit"))
    labels = [one.label for one in model.scorecard(max_bins=None)["n"].bins]
    assert labels == ["up to 0", "1 to 2", "3 to 6", "7 and more", "missing"]
    assert [one.label for one in model.scorecard(max_bins=1)["n"].bins] == ["all", "missing"]


def test_a_card_survives_json_and_then_scores_alike() -> None:
    model = model_of()
    rows = rows_of(model, 100)
    for card in (model.scorecard(rows), model_of("log").relativities(rows)):
        again = type(card).from_json(card.to_json())
        assert again.score(rows).tolist() == card.score(rows).tolist()
        assert again.note == card.note


def test_frames_and_csv_hold_a_row_per_bin_and_the_base() -> None:
    card = model_of().scorecard()
    frame = card.to_frame()
    assert len(frame) == 1 + sum(len(one.bins) for one in card.features)
    assert frame["feature"][0] == "(base)"
    assert frame["points"][0] == card.base
    assert list(card.to_frame(level="features")["feature"]) == [*(one.name for one in card.features), "(all)"]
    assert len(card.to_csv().splitlines()) == len(frame) + 1
    with pytest.raises(UserError, match=r"level must be 'bins' or 'features'; got 'rows'\."):
        card.to_frame(level="rows")


def test_a_workbook_has_bins_differences_and_text_and_no_formula(tmp_path: Any) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    card = model_of().scorecard()
    card.to_excel(tmp_path / "card.xlsx")
    book = openpyxl.load_workbook(tmp_path / "card.xlsx")
    assert book.sheetnames == ["Points", "Differences", "How to read"]
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert all(cell.data_type != "f" for cell in cells)
    assert any(cell.value == "=1+1" for cell in cells)
    assert book["Points"]["F2"].value == card.base


def test_a_page_needs_nothing_else_and_escapes_names(tmp_path: Any) -> None:
    features = (Category("<b>&", ("<script>alert(1)</script>", "b")),)
    model = remembering(make_model(np.random.default_rng(0), features=features, link="logit"))
    text = model.scorecard().to_html()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(src|href)=", text)
    model.scorecard().to_html(tmp_path / "card.html")
    assert (tmp_path / "card.html").read_text() == text


def test_a_card_prints_its_base_its_differences_and_its_first_bins() -> None:
    text = repr(model_of().scorecard())
    assert text.startswith("Scorecard(5 features, base ")
    assert "Difference from the model: root mean square by binning" in text
    assert "more: to_frame()" in text
    assert json.loads(model_of().scorecard().to_json())["type"] == "scorecard"


# --- errors


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"points_to_double": 0}, r"points_to_double must be a finite number above 0; got 0"),
        ({"odds": -1}, r"odds must be a finite number above 0; got -1"),
        ({"base": np.inf}, r"base must be a finite number; got inf"),
        ({"max_bins": 0}, r"max_bins must be an integer of at least 1, or None; got 0"),
        ({"reference": "best"}, r"reference must be one of .*; got 'best'"),
        ({"decimals": 1.5}, r"decimals must be an integer from 0 to 9; got 1.5"),
    ],
)
def test_what_no_card_can_be_made_of_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        model_of().scorecard(**given)


def test_other_links_are_refused_with_the_right_hint() -> None:
    with pytest.raises(UserError, match=r"needs a model of two classes; this one has a log link\. relativities\(\)"):
        model_of("log").scorecard()
    with pytest.raises(UserError, match=r"need a model with a log link; this one has a logit link\. scorecard\(\)"):
        model_of().relativities()
    with pytest.raises(UserError, match=r"Fit with loss='poisson'"):
        model_of("identity").relativities()
    with pytest.raises(UserError, match=r"No feature is called 'agee'\. Did you mean 'age'\?"):
        model_of().scorecard()["agee"]
    assert isinstance(model_of().scorecard(), Scorecard)
    assert isinstance(model_of("log").relativities(), Relativities)


# --- the page

PAGE = Path(__file__).parents[2] / "docs" / "decisions_with_models.md"


@pytest.mark.slow
@pytest.mark.skipif("NAE_DATA" not in os.environ, reason="NAE_DATA does not name the folder with the tables")
def test_the_examples_on_real_tables_say_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text().partition("## Scorecards and relativities")[2].partition("\n## ")[0]
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102
    assert names["table"].base == pytest.approx(0.116, abs=5e-4)
    assert names["table"]["bm"].direction == 1
    assert [one.label for one in names["table"]["bm"].bins][2:5] == ["2 to 6", "7", "8 to 10"]
    assert names["table"].loss.measured.rms < 0.08
    assert names["card"].loss.measured.rms * names["card"].scale.per_unit == pytest.approx(4.7, abs=0.5)
    assert names["points"].min() >= names["card"].base
