"""What the pictures of a page say, read in a real browser: values that occur, axes, where rows lie, pairs, paper."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae.links import LINKS
from nae.report import write_report
from nae.tables import TableModel
from tests.report.browsing import Opened, open_page
from tests.report.test_write import table_of
from tests.report.weekdays import AGES, weekday_model

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Report:
    """An opened report of weekdays."""

    opened: Opened
    model: TableModel

    @property
    def page(self) -> Any:
        return self.opened.page

    def card(self, name: str) -> Any:
        """Return the card of a feature, drawn."""
        card = self.page.locator(f".card[data-feature='{self.model.feature_names.index(name)}']")
        card.scroll_into_view_if_needed()
        card.locator(".figure > :not([aria-hidden])").wait_for()
        return card

    def show(self, *names: str) -> None:
        """Show the map of some features."""
        self.page.locator("#pairs").scroll_into_view_if_needed()
        chosen = [self.model.feature_names.index(name) for name in names]
        self.page.evaluate("chosen => window.nae.state.setPair(chosen)", chosen)

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()


def make_report(browser: Any, path: Path, *, scale: float = 1.0, **context: Any) -> Report:
    model, columns = weekday_model(scale=scale)
    write_report(model, table_of(columns, y=np.arange(700.0)), path, target="y")
    return Report(open_page(browser, path, **context), model)


@pytest.fixture(scope="module")
def report(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    """A page that all tests read; none changes it but by choosing a pair."""
    found = make_report(browser, tmp_path_factory.mktemp("pictures") / "r.html")
    yield found
    found.opened.assert_quiet(Path(found.page.url.removeprefix("file://")))
    found.page.context.close()


def test_weekdays_have_a_bar_and_a_dot_each_of_one_height_and_whole_ticks(report: Report) -> None:
    card = report.card("weekday")
    bars = card.locator(".density rect")
    heights = bars.evaluate_all("all => all.map(one => Number(one.getAttribute('height')))")
    assert len(heights) == 7
    assert max(heights) - min(heights) < 0.5
    assert card.locator("circle.mean-dot").count() == 7
    ticks = card.locator(".axes text[text-anchor=middle]").all_text_contents()
    assert ticks == ["0", "1", "2", "3", "4", "5", "6"]


def test_the_cursor_stops_at_values_that_occur(report: Report) -> None:
    card = report.card("weekday")
    chart = card.locator("svg.shape")
    box = chart.bounding_box()
    seen = set()
    for part in np.linspace(0.2, 0.95, 23):
        report.page.mouse.move(box["x"] + part * box["width"], box["y"] + 40)
        seen.add(card.locator(".reading").inner_text().split(":")[0])
    assert seen == {"0", "1", "2", "3", "4", "5", "6"}
    chart.focus()
    report.page.keyboard.press("ArrowRight")
    assert re.match(r"4: .* on average, always between .*; 14% of rows", card.locator(".reading").inner_text())


def test_a_flag_is_two_values_and_no_slope(report: Report) -> None:
    card = report.card("workingday")
    assert card.locator("svg.shape path").count() == 0
    assert card.locator(".levels .level-name").all_inner_texts() == ["0", "1"]


def test_the_ticks_of_a_shape_are_apart_and_stand_at_values(report: Report) -> None:
    texts = report.card("age").locator(".axes text[text-anchor=middle]")
    assert {float(text) for text in texts.all_text_contents()} <= set(AGES)
    boxes = texts.evaluate_all("all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])")
    assert all(left > right for (_, right), (left, _) in pairwise(boxes))


def test_a_band_that_context_moves_is_not_said_to_be_of_its_own_value_alone(report: Report) -> None:
    report.page.mouse.move(0, 0)  # a card under the pointer reads a value instead
    for name in report.model.feature_names:
        words = report.card(name).locator(".reading").inner_text()
        sentence = r"Its own value explains .*% of its effect; other features typically move it by ±[\d.]+\."
        assert re.fullmatch(sentence, words)


@pytest.mark.parametrize("shape", [{"n_experts": 1}, {"gate": "diagonal"}])
def test_what_context_cannot_move_is_said_to_be_of_its_own_value_alone(
    browser: Any, tmp_path: Path, shape: dict[str, Any]
) -> None:
    model, columns = weekday_model(n_rows=30, **shape)
    found = open_page(browser, write_report(model, table_of(columns), tmp_path / "r.html"))
    words = found.page.locator(".card .reading").all_inner_texts()
    found.page.context.close()
    assert set(words) == {"Its effect depends on its own value alone."}


def test_every_age_has_its_tick_and_the_page_says_that_they_are_not_to_scale(report: Report) -> None:
    report.show("temp", "age")
    texts = report.page.locator("svg.map .axes text[text-anchor=end]")
    assert [float(text) for text in texts.all_text_contents()] == AGES.tolist()
    boxes = texts.evaluate_all("all => all.map(one => one.getBoundingClientRect()).map(box => [box.top, box.bottom])")
    assert all(bottom <= top + 1 for (top, _), (_, bottom) in pairwise(boxes))
    words = report.page.locator(".pair-figure .reading").inner_text()
    assert "Every value of age has the same room, however far apart they are." in words
    report.show("temp", "weekday")
    assert "same room" not in report.page.locator(".pair-figure .reading").inner_text()


def test_a_working_sunday_has_no_colour_and_reads_so(report: Report) -> None:
    report.show("weekday", "workingday")
    fills = report.page.locator("svg.map rect[fill]").evaluate_all("all => all.map(one => one.getAttribute('fill'))")
    empty = {fills[1], fills[2 * 1], fills[2 * 6 + 1]}  # (day, working): (0, 1), (1, 0), (6, 1)
    assert len(empty) == 1
    assert sum(fill in empty for fill in fills) == 7
    report.page.locator("svg.map").focus()
    for key in ("ArrowLeft",) * 6 + ("ArrowUp",):
        report.page.keyboard.press(key)
    assert re.match(r"weekday 0, workingday 1: .*; no row is near", report.texts(".pair-figure .reading")[0])
    report.page.keyboard.press("ArrowDown")
    assert "near" not in report.texts(".pair-figure .reading")[0]


def test_three_way_panels_hold_the_third_feature_at_values_that_occur(report: Report) -> None:
    report.show("temp", "age", "weekday")
    titles = report.texts(".panel figcaption")
    assert 1 < len(titles) <= 5
    assert set(titles) <= {f"weekday = {day}" for day in range(7)}


def test_bars_of_pairs_are_shares_of_the_spread_of_all_scores(report: Report) -> None:
    report.show("temp", "age")
    strongest = report.model.top_interactions(10)
    expected = [pair for pair in strongest if pair.relative >= 0.02]
    assert expected
    shown = report.page.locator(".pairs li")
    assert shown.count() == len(expected)
    widths = shown.locator(".pair-bar i").evaluate_all("all => all.map(one => parseFloat(one.style.width))")
    np.testing.assert_allclose(widths, [min(100 * pair.relative, 100) for pair in expected], rtol=1e-4)
    numbers = [float(text.split()[0].removeprefix("±")) for text in report.texts(".pair-size")]
    np.testing.assert_allclose(numbers, [pair.strength for pair in expected], atol=0.005)


def test_a_table_without_interactions_is_told_that_no_pair_matters(browser: Any, tmp_path: Path) -> None:
    found = make_report(browser, tmp_path / "r.html", scale=1e-3)
    found.page.locator("#pairs").scroll_into_view_if_needed()
    found.page.locator(".pair-note b").wait_for()
    best = found.model.top_interactions(1)[0]
    assert 0 < best.relative < 0.02
    [note] = found.texts(".pair-note")
    assert note.startswith(f"No pair matters here. The strongest is {best.first} × {best.second}: ")
    assert "< 1% of the spread of all scores" in note
    assert found.page.locator(".pairs li").count() == 0
    assert found.page.locator("svg.map").count() == 1
    found.page.context.close()


def test_rows_are_called_as_in_the_file(browser: Any, tmp_path: Path) -> None:
    model, columns = weekday_model(n_rows=30)
    path = write_report(model, table_of(columns), tmp_path / "r.html", row_numbers=np.arange(30) + 1200, max_rows=3)
    page = open_page(browser, path).page
    shown = [text.split()[0] for text in page.locator(".row-button").all_inner_texts()]
    assert shown == ["1200", "1214", "1229"]
    page.locator(".row-button").first.click()
    page.locator("#what-start option:checked", has_text="row 1200").wait_for(state="attached")  # with the next frame
    assert page.locator("#what-start option:checked").inner_text() == "row 1200"
    page.context.close()


def test_paper_has_the_main_chart_and_the_whole_table_of_rows(browser: Any, tmp_path: Path) -> None:
    base, columns = weekday_model(n_rows=60)
    classes = ("a class of a long name", "yes")
    model = replace(base, link=LINKS["logit"], classes=classes, outputs=("yes",))
    truth = np.array(classes, dtype=object)[np.arange(60) % 2]
    path = write_report(model, table_of(columns, truth=truth), tmp_path / "r.html", target="truth")
    page = open_page(browser, path, viewport={"width": 688, "height": 1000}, color_scheme="dark").page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("header").is_hidden()
    bars = page.locator(".fit rect")
    assert bars.count() == 40
    assert bars.evaluate_all("all => all.some(one => one.getBoundingClientRect().height > 20)")
    assert page.locator("#rows td").last.is_visible()
    widths = page.locator("table").evaluate_all(
        "all => all.map(one => [one.scrollWidth, one.parentElement.clientWidth])"
    )
    assert all(inner <= outer for inner, outer in widths)
    assert page.evaluate("document.documentElement.scrollWidth") == 688
    assert page.evaluate("window.nae.state.isDark") is False
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("window.nae.state.isDark") is True
    page.context.close()
