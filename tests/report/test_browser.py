"""The page in a real browser: opened from disk, used by pointer and keyboard, printed, and compared with Python."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae.encoding import Category, Feature, Number, Schema
from nae.explanation import with_statistics
from nae.links import LINKS
from nae.report import write_report
from nae.tables import GateTables, SoftmaxRouting, TableModel, TrainingSummary
from tests.certificates.planted import FEATURES, monotone_model, own_terms
from tests.explanation.examples import explained_model
from tests.laws.models import make_model
from tests.report.browsing import Opened, open_page
from tests.report.test_write import HOSTILE, hostile_model, table_of

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    """A model, the rows of its report, and the report."""

    model: TableModel
    table: dict[str, Any]
    path: Path


def make_case(folder: Path, name: str, **shape: Any) -> Case:
    model, columns = explained_model(11, **shape)
    table = table_of(columns, y=np.arange(12.0))
    target = "y" if not model.classes else None
    return Case(model, table, write_report(model, table, folder / f"{name}.html", target=target))


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    shape = {"n_features": 5, "n_members": 2, "n_experts": 4, "dtype": np.float32}
    return make_case(tmp_path_factory.mktemp("page"), "plain", **shape)


@pytest.fixture
def opened(browser: Any, case: Case) -> Iterator[Opened]:
    found = open_page(browser, case.path)
    yield found
    found.page.context.close()


def score_of(page: Any) -> float:
    return float(page.locator(".score").get_attribute("data-score"))


def expected_score(model: TableModel, values: list[Any]) -> float:
    table = {name: [value] for name, value in zip(model.feature_names, values, strict=True)}
    return float(np.ravel(model.decision_function(table))[0])


def random_values(model: TableModel, random: np.random.Generator) -> list[Any]:
    """Return a row of any values: known, in between, out of range, missing and unseen."""
    row: list[Any] = []
    for feature in model.schema.features:
        if random.uniform() < 0.1:
            row.append(None)
        elif feature.kind == "category":
            row.append(str(random.choice([*feature.labels[: feature.n_values], "never seen"])))
        else:
            low, high = float(feature.knots[0]), float(feature.knots[-1])
            row.append(float(random.uniform(low - (high - low) / 4, high + (high - low) / 4)))
    return row


@pytest.mark.parametrize("script", ["console.log('a word')", "fetch('other.json').catch(() => 0)", "nothing.at.all"])
def test_a_page_that_speaks_or_asks_is_found(browser: Any, tmp_path: Path, script: str) -> None:
    quiet, loud = tmp_path / "quiet.html", tmp_path / "loud.html"
    text = "<!doctype html><html data-ready><link rel='icon' href='data:,'><script>{}</script></html>"
    quiet.write_text(text.format(""))
    loud.write_text(text.format(script))
    open_page(browser, quiet).assert_quiet(quiet)
    found = open_page(browser, loud)
    found.page.wait_for_timeout(100)  # what is asked for is asked for soon
    with pytest.raises(AssertionError):
        found.assert_quiet(loud)


def test_the_page_opens_from_disk_without_a_word_or_a_request(opened: Opened, case: Case) -> None:
    opened.assert_quiet(case.path)
    sections = opened.page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
    assert sections == ["top", "features", "what-if", "pairs", "rows", "never", "caveats"]


def line_model(start: float, end: float) -> TableModel:
    """Return a model that follows the absolute loss, from ``start`` at 0 to ``end`` at 11."""
    schema = Schema((Number("x", np.array([0.0, 11.0])),))
    model = TableModel(
        schema=schema,
        experts=np.array([start, end, 0.0, 0.0]).reshape(4, 1, 1, 1),
        gate=GateTables("additive", np.zeros((4, 1, 1)), np.zeros((1, 1))),
        routing=SoftmaxRouting(1),
        intercept=np.zeros(1),
        link=LINKS["identity"],
        training=TrainingSummary(loss="absolute", baseline={"values": [5.5], "level": 0.5}),
    )
    return with_statistics(model, {"x": np.arange(12.0)})


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((5.5, 5.5), ("the same as the 3 of", "the same as the 0 of")),
        ((0.5, 11.5), ("83% lower than the 3 of", "above the 0 of")),
        ((11.0, 0.0), ("100% higher than the 3 of", "below the 0 of")),
    ],
)
def test_a_measure_is_better_than_the_baseline_worse_or_the_same(
    browser: Any, tmp_path: Path, ends: tuple[float, float], words: tuple[str, str]
) -> None:
    table = {"x": np.arange(12.0), "y": np.arange(12.0), "o": np.zeros(12)}
    opened = open_page(browser, write_report(line_model(*ends), table, tmp_path / "r.html", target="y", offset="o"))
    notes = opened.page.locator(".tile-note").all_inner_texts()
    for note, word in zip(notes[:2], words, strict=True):
        assert note.startswith(f"{word} always predicting the median")
        assert "Of 100 samples with as many rows, 95 lie between" in note
    assert "An offset is added to the score" in opened.page.locator(".notice").inner_text()
    opened.page.context.close()


def test_the_policy_stops_a_request_and_a_script(opened: Opened) -> None:
    outcome = opened.page.evaluate(
        """async () => {
            const script = document.createElement('script');
            script.textContent = 'window.intruder = true';
            document.body.append(script);
            const answer = await fetch('https://example.org/').then(() => 'reached', () => 'refused');
            return [answer, window.intruder === true];
        }"""
    )
    assert outcome == ["refused", False]
    assert any("Content Security Policy" in text for text in opened.said)


def test_two_hundred_what_ifs_are_what_python_says(opened: Opened, case: Case) -> None:
    random = np.random.default_rng(0)
    rows = [random_values(case.model, random) for _ in range(200)]
    answers = json.loads(opened.page.evaluate("rows => JSON.stringify(rows.map(row => window.nae.predict(row)))", rows))
    names = case.model.feature_names
    table = {name: np.array([row[i] for row in rows], dtype=object) for i, name in enumerate(names)}
    local = case.model.explain_local(table)
    for key in ("values", "lower", "upper", "own", "score", "prediction"):
        expected = getattr(local, key).reshape(len(rows), -1)
        np.testing.assert_allclose([answer[key] for answer in answers], expected, rtol=0, atol=1e-6, err_msg=key)


def test_a_slider_moves_the_score(opened: Opened, case: Case) -> None:
    page = opened.page
    before = score_of(page)
    slider = page.locator(".control input[type=range]:enabled").first
    slider.focus()
    page.keyboard.press("End")
    after = score_of(page)
    assert after != before
    values = page.evaluate("window.nae.state.values")
    assert after == pytest.approx(expected_score(case.model, values), abs=1e-6)
    shown = page.locator(".score .big").inner_text()
    assert float(shown.replace(",", "")) == pytest.approx(after, rel=1e-3)
    assert page.locator(".fall").count() == case.model.n_features + 2


def test_the_missing_switch_and_a_list_of_levels_move_the_score(opened: Opened, case: Case) -> None:
    page = opened.page
    page.locator(".control-missing input").first.check()
    first = int(page.locator(".control").first.get_attribute("data-feature"))
    values = page.evaluate("window.nae.state.values")
    assert values[first] is None
    assert score_of(page) == pytest.approx(expected_score(case.model, values), abs=1e-6)
    page.locator(".control select").first.select_option(index=1)
    values = page.evaluate("window.nae.state.values")
    assert score_of(page) == pytest.approx(expected_score(case.model, values), abs=1e-6)


def test_a_bar_says_who_shifted_it_and_keeps_the_focus(opened: Opened) -> None:
    opened.page.locator("button.fall-label").first.focus()
    opened.page.keyboard.press("Enter")
    assert opened.page.locator("button.fall-label").first.evaluate("one => one === document.activeElement")
    detail = opened.page.locator(".fall-detail").inner_text()
    assert re.search(r"stays between \S+ and \S+\.", detail)
    assert "because" in detail


def test_a_row_can_be_taken_into_what_if(opened: Opened, case: Case) -> None:
    page = opened.page
    errors = page.locator("#rows td.strong").all_inner_texts()
    sizes = [abs(float(text.replace(",", ""))) for text in errors]
    assert sizes == sorted(sizes, reverse=True)
    row = int(page.locator(".row-button").first.inner_text().split()[0]) - 1
    page.locator(".row-button").first.click()
    expected = case.model.decision_function(case.table)[row]
    page.locator(".score", has_text=f"actual: {row}").wait_for()  # drawn with the next frame
    assert score_of(page) == pytest.approx(expected, abs=1e-6)
    assert page.locator(".score").inner_text().endswith(f"actual: {row}")


def test_a_pair_can_be_picked_and_a_third_feature_added(opened: Opened, case: Case) -> None:
    page = opened.page
    page.locator("#pairs").scroll_into_view_if_needed()
    page.locator(".pairs button").nth(1).click()
    chosen = [case.model.feature_names[i] for i in page.evaluate("window.nae.state.pair")]
    label = page.locator("svg.map").get_attribute("aria-label")
    assert label.startswith(f"Map of {chosen[0]} and {chosen[1]}")
    assert all(name in page.locator(".who").inner_text() for name in chosen)
    page.locator("svg.map").focus()
    page.keyboard.press("ArrowRight")
    assert re.match(rf"{chosen[0]} .*, {chosen[1]} .*: [+\-−]?\d", page.locator(".pair-figure .reading").inner_text())
    third = next(i for i, name in enumerate(case.model.feature_names) if name not in chosen)
    page.locator("#pair-2").select_option(str(third))
    assert page.locator("svg.map").count() > 1


def test_features_can_be_searched_sorted_and_read_by_keyboard(opened: Opened, case: Case) -> None:
    page = opened.page
    page.locator("#feature-sort").select_option("name")
    assert page.locator(".card h3").all_inner_texts() == sorted(case.model.feature_names)
    page.locator("#feature-search").fill("F3")
    assert page.locator(".card h3").all_inner_texts() == ["f3"]
    page.locator("#feature-search").fill("")
    chart = page.locator("svg.shape[tabindex]").first
    chart.focus()
    page.keyboard.press("ArrowRight")
    assert "on average" in page.locator(".card .reading", has_text="on average").first.inner_text()


def test_the_theme_can_be_switched(opened: Opened) -> None:
    page = opened.page
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.locator("#theme").click()
    after = page.evaluate(colour)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert before != after
    page.locator("#theme").click()
    assert page.evaluate(colour) == before


def test_the_tab_key_reaches_every_section_and_is_seen(opened: Opened) -> None:
    page = opened.page
    reached, names = set(), []
    for _ in range(150):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
                const one = document.activeElement;
                const label = one.labels && one.labels.length ? one.labels[0].textContent : '';
                const style = getComputedStyle(one);
                return [one.closest('section')?.id, one.getAttribute('aria-label') || label || one.textContent,
                        style.outlineStyle];
            }"""
        )
        if found[0] is None and reached and "caveats" in reached:
            break
        reached.add(found[0])
        names.append(found[1])
        assert found[2] != "none", f"{found[1]!r} does not show that it has the focus"
    assert {"features", "what-if", "pairs", "rows", "caveats"} <= reached
    assert all(name.strip() for name in names)


def test_the_page_prints(opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    opened.page.pdf(path=path, format="A4", print_background=True)
    content = path.read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") >= 2


def test_a_phone_never_scrolls_sideways(browser: Any, case: Case) -> None:
    found = open_page(browser, case.path, viewport={"width": 360, "height": 740}, is_mobile=True)
    found.page.mouse.wheel(0, 4000)
    width = found.page.evaluate("document.documentElement.scrollWidth")
    found.page.context.close()
    assert width == 360


def test_numbers_follow_the_readers_locale(browser: Any, case: Case) -> None:
    page = browser.new_context(locale="de-DE").new_page()
    page.goto(case.path.as_uri())
    page.wait_for_selector("html[data-ready]")
    texts = page.locator(".fall-number").all_inner_texts()
    page.context.close()
    assert all("," in text and "." not in text for text in texts)


def test_hostile_names_are_shown_as_text_and_break_nothing(browser: Any, tmp_path: Path) -> None:
    model, rows = hostile_model()
    path = write_report(model, rows, tmp_path / "r.html", title=HOSTILE[0])
    found = open_page(browser, path, viewport={"width": 390, "height": 800})
    page = found.page
    page.locator("#feature-sort").select_option("table")
    shown = page.locator(".card h3 bdi").evaluate_all("all => all.map(one => one.textContent)")
    assert [text.encode("utf-16", "replace") for text in shown] == [
        name.encode("utf-16", "replace") for name in HOSTILE
    ]
    page.locator(".control select").first.select_option(index=2)
    page.locator("#pairs").scroll_into_view_if_needed()
    page.locator(".pairs button").first.click()
    page.locator("button.fall-label").first.click()
    assert page.locator("img, main script, main style, iframe").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    found.assert_quiet(path)
    page.context.close()


def test_two_hundred_and_eighty_features_stay_usable(browser: Any, tmp_path: Path) -> None:
    model, columns = explained_model(5, n_features=280, gate="low-rank", n_members=2, dtype=np.float32)
    path = write_report(model, table_of(columns), tmp_path / "wide.html")
    found = open_page(browser, path)
    page = found.page
    assert page.locator(".card").count() == 280
    assert page.locator(".card .figure > :not([aria-hidden])").count() < 60  # the others wait
    assert page.locator(".control").count() == 12
    page.locator("#what-search").fill("f27")
    assert page.locator(".control").count() == 11
    page.locator(".control-missing input").first.check()
    values = page.evaluate("window.nae.state.values")
    assert score_of(page) == pytest.approx(expected_score(model, values), abs=1e-5)
    found.assert_quiet(path)
    page.context.close()


def test_a_model_of_the_default_size_takes_six_megabytes_at_most_and_is_ready_at_once(
    browser: Any, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    n_features, n_experts, n_members, n_knots = 8, 8, 8, 128
    features = tuple(Number(f"f{i}", np.sort(random.standard_normal(n_knots))) for i in range(n_features))
    shape = (n_features * (n_knots + 2), n_experts * n_features, n_members)
    model = TableModel(
        schema=Schema(features),
        experts=random.standard_normal((shape[0], n_experts, 1, n_members)).astype(np.float32),
        gate=GateTables("additive", *(random.standard_normal(s).astype(np.float32) for s in (shape, shape[1:]))),
        routing=SoftmaxRouting(n_experts),
        intercept=np.zeros(1),
        link=LINKS["identity"],
    )
    table = {feature.name: random.standard_normal(600) for feature in features}
    path = write_report(with_statistics(model, table), table | {"y": random.standard_normal(600)}, tmp_path / "r.html")
    assert path.stat().st_size <= 6_000_000
    found = open_page(browser, path)
    ready = int(found.page.locator("html").get_attribute("data-ready"))
    answer = found.page.evaluate(
        """() => {
            const start = performance.now();
            for (let n = 0; n < 20; n++) window.nae.state.setValue(n % 8, n / 10 - 1);
            return (performance.now() - start) / 20;
        }"""
    )
    found.page.context.close()
    # Milliseconds, with much room for a machine that does other things at the same time.
    assert ready < 4000
    assert answer < 250


ODD = {
    "one feature": (Number("only", np.array([0.0, 1.0, 5.0])),),
    "nothing known": (Number("constant", np.array([3.0])), Category("empty", levels=(), has_missing=True)),
    "booleans": (Number("left", np.array([0.0, 1.0]), is_boolean=True), Number("right", np.array([1.0]), True, True)),
}


@pytest.mark.parametrize("n_experts", [1, 2])
@pytest.mark.parametrize("features", ODD.values(), ids=list(ODD))
def test_odd_models_are_shown_too(browser: Any, tmp_path: Path, features: tuple[Feature, ...], n_experts: int) -> None:
    random = np.random.default_rng(0)
    schema = Schema(features)
    width = n_experts * len(features)
    model = TableModel(
        schema=schema,
        experts=random.standard_normal((schema.n_slots, n_experts, 1, 1)),
        gate=GateTables("additive", random.standard_normal((schema.n_slots, width, 1)), np.zeros((width, 1))),
        routing=SoftmaxRouting(n_experts),
        intercept=np.zeros(1),
        link=LINKS["identity"],
    )
    table = {f.name: np.array([None, None] if f.kind == "category" else [1.0, np.nan]) for f in features}
    path = write_report(with_statistics(model, table), table | {"score": [1.0, 2.0]}, tmp_path / "r.html")
    found = open_page(browser, path)
    page = found.page
    for section in ("features", "what-if", "pairs", "rows", "never", "caveats"):
        page.locator(f"#{section}").scroll_into_view_if_needed()
    page.locator(".row-button").first.click()
    page.locator(".control-missing input").last.set_checked(checked=True)
    page.locator(".control-missing input").last.set_checked(checked=False)
    page.wait_for_timeout(100)
    assert not re.search("NaN|undefined|Infinity|∞", page.content().partition("<script>")[0])
    values = page.evaluate("window.nae.state.values")
    assert score_of(page) == pytest.approx(expected_score(model, values), abs=1e-6)
    found.assert_quiet(path)
    page.context.close()


def test_a_model_of_a_constant_says_so_without_a_sign_or_a_share_of_nothing(browser: Any, tmp_path: Path) -> None:
    schema = Schema((Number("one", np.array([0.0, 1.0])), Number("two", np.array([0.0, 1.0]))))
    model = TableModel(
        schema=schema,
        experts=np.zeros((schema.n_slots, 2, 1, 1)),
        gate=GateTables("additive", np.zeros((schema.n_slots, 4, 1)), np.zeros((4, 1))),
        routing=SoftmaxRouting(2),
        intercept=np.full(1, 3.0),
        link=LINKS["identity"],
    )
    table = {"one": np.array([0.0, 1.0]), "two": np.array([1.0, 0.0])}
    path = write_report(with_statistics(model, table), table | {"score": [3.0, 3.0]}, tmp_path / "r.html")
    found = open_page(browser, path)
    page = found.page
    for section in ("features", "what-if", "pairs", "rows", "never", "caveats"):
        page.locator(f"#{section}").scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    text = page.locator("body").inner_text()
    assert "the same as the 0 of always predicting the mean" in text
    assert not re.search(r"NaN|∞|-0(\.0+)?(?![.\d])|0\.0000", text)
    found.assert_quiet(path)
    page.context.close()


def test_a_smaller_copy_says_how_far_it_is_off(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nae.report.write.PAGE_LIMIT", 1)
    case = make_case(tmp_path, "small", n_members=3)
    found = open_page(browser, case.path)
    notice = found.page.locator(".notice").inner_text()
    found.page.context.close()
    assert re.search(r"1 of its 3 members.*, with 16 bits per number\. On 12 rows, .* by at most [\d.]+\.", notice)


def sealed_model() -> TableModel:
    """Return a model that keeps some of its promises."""
    model = with_statistics(monotone_model(np.random.default_rng(0), gate="additive"), seal_rows())
    own_terms(model, 2)[:] = 0.3
    return model.with_training(
        target="risk",
        constraints={
            "monotone": {"income": "+"},
            "max_effect": {"town": 9.0},
            "isolated": ["age"],
            "unchanged": ["age"],
        },
    )


def seal_rows() -> dict[str, Any]:
    return {"income": np.arange(12.0) % 6, "age": np.linspace(0, 30, 12), "town": ["Ulm", "K\u00f6ln", "Aalen"] * 4}


@pytest.mark.parametrize("width", [390, 1280])
def test_what_a_model_can_never_do_is_shown_with_what_it_does_not_keep(
    browser: Any, tmp_path: Path, width: int
) -> None:
    path = write_report(sealed_model(), seal_rows(), tmp_path / "sealed.html")
    found = open_page(browser, path, viewport={"width": width, "height": 800})
    section = found.page.locator("#never")
    assert section.locator(".seal h3").all_inner_texts() == [
        "A higher value never lowers the prediction",
        "Moves the prediction by no more than",
        "Changes no other effect",
    ]
    assert [text.split() for text in section.locator(".seal-names").all_inner_texts()] == [
        ["income"],
        ["town", "9"],
        ["town"],
    ]
    broken = section.locator(".broken").inner_text()
    assert "Promises that are not kept" in broken
    assert "Refuted: age changes the effect of no other feature." in broken
    assert "Refuted: No other feature changes the effect of age." in broken
    assert section.locator(".forest-row").count() == 3
    assert section.locator(".forest-cap").count() == 1
    for row in section.locator(".forest-row").all():
        inner, outer = (row.locator(one).bounding_box() for one in (".forest-usual", ".forest-range"))
        assert outer["x"] - 3 <= inner["x"]
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 3
        assert row.locator(".forest-track").get_attribute("aria-label").count("for any input") == 1
    assert found.page.evaluate("document.documentElement.scrollWidth") == width
    found.assert_quiet(path)
    found.page.context.close()


def test_quantiles_that_never_cross_have_a_seal(browser: Any, tmp_path: Path) -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, n_outputs=2, link="identity")
    model.experts[:] = np.sort(model.experts, axis=2)
    model = replace(model, outputs=("q0.1", "q0.9"), intercept=np.array([0.0, 1.0]))
    promising = with_statistics(model, seal_rows()).with_training(constraints={"ordered": True})
    path = write_report(promising, seal_rows(), tmp_path / "quantiles.html")
    found = open_page(browser, path)
    assert found.page.locator(".seal h3").all_inner_texts() == ["Quantiles never cross"]
    assert found.page.locator(".seal-names").inner_text() == "q0.1 \u2264 q0.9"
    assert "apart" in found.page.locator(".seal-foot").inner_text()
    found.assert_quiet(path)
    found.page.context.close()


def test_the_page_lists_what_would_have_to_change(browser: Any, tmp_path: Path) -> None:
    model, columns = explained_model(11, n_features=5, n_members=2, n_experts=4)
    target = (float(np.quantile(model.predict(columns), 0.8)), None)
    path = write_report(model, table_of(columns), tmp_path / "page.html", recourse={"target": target, "support": 0})
    found = open_page(browser, path)
    section = found.page.locator("#recourse")
    assert section.locator("h2").inner_text() == "What would have to change"
    assert section.locator("details[open] li").count() > 0
    assert "the prediction goes from" in section.locator("details[open]").inner_text()
    assert found.page.locator("nav a[href='#recourse']").count() == 1
    found.assert_quiet(path)
    found.page.context.close()
