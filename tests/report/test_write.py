import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae.encoding import Category, Columns, Number, Schema
from nae.errors import ConfigError, DataError, UserError
from nae.explanation import with_statistics
from nae.links import LINKS
from nae.quality import measure
from nae.report import write_report
from nae.report.density import MOST_PAIRS
from nae.tables import GateTables, SoftmaxRouting, TableModel
from nae.tables.evidence import Evidence
from tests.explanation.examples import explained_model
from tests.laws.models import make_model
from tests.report.golden import PATH as GOLDEN
from tests.report.golden import build_golden
from tests.report.weekdays import weekday_model

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """A page taken apart: every element with its attributes, and the text of scripts and styles."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.is_open = False
        self.feed(path.read_text(encoding="ascii"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        self.is_open = True

    def handle_endtag(self, tag: str) -> None:
        self.is_open = False

    def handle_data(self, data: str) -> None:
        if self.is_open:
            self.texts[-1] += data

    def text_of(self, tag: str, **wanted: str) -> str:
        """Return the text of the one element with a tag and attributes."""
        [found] = [
            text
            for (name, attributes), text in zip(self.elements, self.texts, strict=True)
            if name == tag and all(attributes.get(key) == value for key, value in wanted.items())
        ]
        return found

    @property
    def content(self) -> dict[str, Any]:
        return json.loads(self.text_of("script", type="application/json"))


def table_of(columns: Columns, **more: Any) -> dict[str, Any]:
    assert columns.names is not None
    return dict(zip(columns.names, columns.arrays, strict=True)) | more


def test_a_report_without_a_truth_still_names_the_target_of_the_model(tmp_path: Path) -> None:
    model, columns = explained_model(1, n_members=2)
    page = Page(write_report(model.with_training(target="loan"), table_of(columns), tmp_path / "r.html"))
    assert (page.content["target"], page.text_of("title")) == ("loan", "How the model predicts loan")


def test_a_report_is_one_file_with_the_model_and_rows_inside(tmp_path: Path) -> None:
    model, columns = explained_model(1, n_members=2)
    path = write_report(model, table_of(columns, y=np.arange(12.0)), tmp_path / "r.html", target="y", title="A & B")
    assert path == tmp_path / "r.html"
    page = Page(path)
    content = page.content
    assert page.text_of("title") == "A & B"
    assert content["target"] == "y"
    assert content["rows"]["number"] == list(range(1, 13))
    assert content["rows"]["target"] == [list(range(12))]
    np.testing.assert_allclose(np.ravel(content["rows"]["score"]), model.decision_function(columns))
    stored = np.frombuffer(base64.b64decode(content["arrays"]["experts"]["data"]))
    np.testing.assert_array_equal(stored, model.experts.ravel())
    assert content["quality"]["nRows"] == 12
    assert content["reduction"] is None


def test_a_page_says_where_true_effects_lie_and_what_is_noise(tmp_path: Path) -> None:
    model, columns = explained_model()
    slots, F = model.schema.n_slots, model.n_features
    known = Evidence(np.zeros((slots, 1)), np.full((slots, 1), 0.5), np.linspace(0.0, 1.0, F)[:, None])
    write_report(replace(model, evidence=known), columns, tmp_path / "page.html")
    features = Page(tmp_path / "page.html").content["features"]
    assert [one["isNoise"] for one in features] == [False, *[True] * (F - 1)]
    lower, upper = known.band(model.statistics.mean, 0.9)
    assert [row[0] for one in features for row in one["sure"]["lower"]] == pytest.approx(lower[:, 0].tolist(), rel=1e-5)
    assert [row[0] for one in features for row in one["sure"]["upper"]] == pytest.approx(upper[:, 0].tolist(), rel=1e-5)
    write_report(model, columns, tmp_path / "page.html")
    assert "sure" not in Page(tmp_path / "page.html").content["features"][0]


def test_several_quantiles_have_one_truth(tmp_path: Path) -> None:
    model, columns = explained_model(1, n_outputs=2)
    several = model.with_training(loss="quantile", quantile=[0.1, 0.9], target="price")
    truth = np.arange(12.0)
    by_name = Page(write_report(several, table_of(columns, price=truth), tmp_path / "a.html"))
    given = Page(write_report(several, table_of(columns, y=truth), tmp_path / "b.html", target="y"))
    for page in (by_name, given):
        assert page.content["rows"]["target"] == [truth.tolist()] * 2
        assert page.content["quality"]["baseline"] == "always predicting the 10 % and 90 % quantiles"
    assert Page(write_report(several, table_of(columns), tmp_path / "c.html")).content["target"] == "price"


def test_columns_that_the_model_does_not_know_may_hold_anything(tmp_path: Path) -> None:
    model, columns = explained_model(1)
    path = write_report(model, table_of(columns, when=np.full(12, np.datetime64("2020-01-01"))), tmp_path / "r.html")
    assert len(Page(path).content["rows"]["number"]) == 12


def test_an_estimator_stands_for_its_tables(tmp_path: Path) -> None:
    model, columns = explained_model(1)

    class Estimator:
        model_ = model

    path = write_report(Estimator(), table_of(columns), tmp_path / "r.html")  # type: ignore[arg-type]
    assert Page(path).content["quality"] is None


def test_the_policy_allows_the_one_script_and_the_one_style_and_nothing_else(tmp_path: Path) -> None:
    model, columns = explained_model(1)
    page = Page(write_report(model, table_of(columns), tmp_path / "r.html"))
    [policy] = [
        attributes["content"]
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    scripts = [
        text
        for (tag, attributes), text in zip(page.elements, page.texts, strict=True)
        if tag == "script" and "type" not in attributes
    ]
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{_digest(scripts[0])}'",
        "style-src": f"'sha256-{_digest(page.text_of('style'))}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(scripts) == 1
    assert not [tag for tag, attributes in page.elements if {"src", "href", "style", "onclick"} & set(attributes)]


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("ascii")).digest()).decode()


HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "quotes \" ' ` and \\ and \u2028",
    "emoji 🙈 and \ud83d alone",
    "עברית و العربية",
    "long " * 60,
)


def hostile_model() -> tuple[TableModel, dict[str, Any]]:
    """Return a model whose names, levels and output are made to break a page, and rows for it."""
    features = tuple(Category(name, levels=HOSTILE) for name in HOSTILE)
    slots, n_logits = sum(feature.n_slots for feature in features), 2 * len(features)
    random = np.random.default_rng(0)
    model = TableModel(
        schema=Schema(features),
        experts=random.standard_normal((slots, 2, 1, 1)),
        gate=GateTables("additive", random.standard_normal((slots, n_logits, 1)), np.zeros((n_logits, 1))),
        routing=SoftmaxRouting(2),
        intercept=np.zeros(1),
        link=LINKS["identity"],
        outputs=(HOSTILE[0],),
    )
    rows = {name: np.array(HOSTILE, dtype=object) for name in HOSTILE}
    return with_statistics(model, rows), rows


def test_hostile_names_and_levels_stay_data(tmp_path: Path) -> None:
    model, rows = hostile_model()
    page = Page(write_report(model, rows, tmp_path / "r.html", title=HOSTILE[0]))
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert "img" not in [tag for tag, _ in page.elements]
    content = page.content
    assert [feature["name"] for feature in content["features"]] == list(HOSTILE)
    assert content["rows"]["columns"][0]["texts"] == sorted(HOSTILE)
    assert content["title"] == page.text_of("title") == HOSTILE[0]


def test_rows_are_spread_over_the_table_and_can_be_left_out(tmp_path: Path) -> None:
    model, columns = explained_model(1)
    few = Page(write_report(model, table_of(columns), tmp_path / "r.html", max_rows=3)).content
    assert few["rows"]["number"] == [1, 7, 12]
    assert few["rows"]["nTotal"] == 12
    assert few["density"]["pairs"] == [[0, 1], [0, 2], [1, 2]]
    none = Page(write_report(model, table_of(columns), tmp_path / "r.html", max_rows=0)).content
    assert none["rows"]["number"] == []
    assert none["rows"]["score"] == []
    assert none["density"] is None  # where the rows lie is about the rows, too


def test_rows_are_called_as_in_the_file_they_were_taken_from(tmp_path: Path) -> None:
    model, columns = explained_model(1)
    numbers = np.arange(12) * 10 + 3
    page = Page(write_report(model, table_of(columns), tmp_path / "r.html", max_rows=3, row_numbers=numbers))
    assert page.content["rows"]["number"] == [3, 63, 113]


def test_numbers_of_few_values_are_told_from_those_of_many(tmp_path: Path) -> None:
    model, columns = weekday_model()
    features = Page(write_report(model, table_of(columns), tmp_path / "r.html")).content["features"]
    assert {one["name"] for one in features if one["isListed"]} == {"weekday", "workingday", "age"}
    between = table_of(columns) | {"age": np.linspace(1.0, 91.0, 700)}
    features = Page(write_report(model, between, tmp_path / "r.html")).content["features"]
    assert {one["name"] for one in features if one["isListed"]} == {"weekday", "workingday"}


def test_where_rows_lie_takes_little_of_a_page(tmp_path: Path) -> None:
    model, columns = explained_model(1, n_features=40, n_members=1)
    content = Page(write_report(model, table_of(columns), tmp_path / "r.html")).content["density"]
    assert len(content["pairs"]) == MOST_PAIRS
    assert len(json.dumps(content)) < 330 * MOST_PAIRS


def test_rows_are_measured_and_shown_with_their_offset_and_weight(tmp_path: Path) -> None:
    model, columns = explained_model(1)
    model = model.with_training(offset=["o"])
    offset, weight, truth = np.arange(12.0), np.arange(12.0) % 3, np.arange(12.0) ** 2
    path = tmp_path / "r.html"
    for table, given in (
        (table_of(columns, y=truth, o=offset, w=weight), {}),
        (table_of(columns, y=truth, other=offset, w=weight), {"offset": "other"}),
    ):
        content = Page(write_report(model, table, path, target="y", sample_weight="w", **given)).content
        np.testing.assert_allclose(np.ravel(content["rows"]["score"]), model.decision_function(columns) + offset)
        expected = measure(model, columns, truth, sample_weight=weight, offset=offset)
        assert content["quality"]["nRows"] == 8
        for shown, one in zip(content["quality"]["scores"], expected, strict=True):
            assert (shown["name"], shown["model"], shown["baseline"]) == (one.title, one.value, one.baseline)
            assert tuple(shown["interval"]) == one.interval
        assert content["offsetNote"].startswith("An offset (o) is added to the score, and is no feature. The rows")
    with pytest.raises(DataError, match=r"its offset was 'o', and none was given. Name its column: offset="):
        write_report(model, table_of(columns, y=truth), path, target="y")
    with pytest.raises(DataError, match=r"The weight must be a column of the table; 'ww' is not. Did you mean 'w'"):
        write_report(model, table, path, target="y", offset="other", sample_weight="ww")


def test_a_model_without_an_offset_says_nothing_of_one(tmp_path: Path) -> None:
    model, columns = explained_model(1)
    assert "offsetNote" not in Page(write_report(model, table_of(columns), tmp_path / "r.html")).content


def test_a_class_is_known_by_any_way_of_writing_it(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    base = make_model(random, n_outputs=1)
    model = TableModel(
        schema=Schema((Number("x", np.array([0.0, 1.0])),)),
        experts=base.experts[:4],
        gate=GateTables("additive", base.gate.terms[:4, :3], base.gate.bias[:3]),
        routing=base.routing,
        intercept=base.intercept,
        link=LINKS["logit"],
        outputs=("1",),
        classes=("0", "1"),
    )
    model = with_statistics(model, {"x": [0.0, 1.0]})
    for labels in ([0, 1, 1], [0.0, 1.0, 1.0], ["0", "1", "1"]):
        table = {"x": [0.0, 0.5, 1.0], "label": labels}
        rows = Page(write_report(model, table, tmp_path / "r.html", target="label")).content["rows"]
        assert rows["target"] == [[0, 1, 1]]
    with pytest.raises(DataError, match=r"'label' must hold the model's classes \['0', '1'\]; row 1 holds '2'"):
        write_report(model, {"x": [0.0, 1.0], "label": [0, 2]}, tmp_path / "r.html", target="label")


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"target": "yy"}, DataError, "The target must be a column of the table; 'yy' is not. Did you mean 'y'?"),
        ({"row_numbers": [1, 2]}, DataError, "row_numbers must hold one number per row; got 2 for 12 rows."),
        ({"max_rows": -1}, ConfigError, "max_rows must not be negative; got -1."),
        ({"data": {"f0": [], "f1": [], "f2": []}}, DataError, "A report needs at least one row; the table has none."),
        ({"model": 3}, UserError, "A report needs a fitted model or its tables; got int."),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], match: str
) -> None:
    model, columns = explained_model(1)
    call = {"model": model, "data": table_of(columns, y=np.arange(12.0)), "path": tmp_path / "r.html"} | change
    with pytest.raises(error, match=re.escape(match)):
        write_report(**call)
    assert not list(tmp_path.iterdir())


def test_a_model_without_statistics_says_how_to_get_them(tmp_path: Path) -> None:
    model = make_model(np.random.default_rng(0))
    with pytest.raises(DataError, match="An explanation needs the statistics"):
        write_report(model, {"f0": [0]}, tmp_path / "r.html")


def test_the_assets_were_built_from_the_sources_at_hand() -> None:
    digest = hashlib.sha256()
    for source in sorted((ROOT / "web" / "src").iterdir(), key=lambda path: path.name):
        digest.update(f"{source.name}\n".encode())
        digest.update(source.read_bytes())
    for name in ("report.js", "report.css"):
        asset = (ROOT / "src" / "nae" / "report" / "assets" / name).read_text(encoding="ascii")
        assert digest.hexdigest() in asset.splitlines()[0], "run `npm run build` in web/"


def test_the_golden_tables_are_what_the_library_says_today() -> None:
    _assert_same(build_golden(), json.loads(GOLDEN.read_text(encoding="ascii")))


def _assert_same(found: Any, expected: Any) -> None:
    """Fail unless two JSON values are the same, numbers to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected.keys() - {"library", "data"}:  # packed arrays differ in their last bits between machines
            _assert_same(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)
    else:
        assert found == expected


def test_the_comparison_of_golden_tables_can_fail() -> None:
    with pytest.raises(AssertionError):
        _assert_same([{"a": [1.0, 2.0]}], [{"a": [1.0, 2.1]}])


def test_a_page_says_what_would_have_to_change_in_its_rows(tmp_path: Path) -> None:
    model, columns = explained_model(11, n_features=5, n_members=2, n_experts=4)
    low, high = np.quantile(model.predict(columns), [0.2, 0.8])
    page = tmp_path / "page.html"
    write_report(model, table_of(columns), page, max_rows=8, recourse={"target": (float(high), None), "support": 0})
    found = Page(page).content["recourse"]
    assert found["target"] == f"the prediction is at least {high:.4g}"
    assert 0 < len(found["rows"]) < 8
    assert len(found["rows"]) + found["nReached"] == 8
    ways = [way for row in found["rows"] for way in row["ways"]]
    assert ways
    assert all("the prediction goes from" in way for way in ways)
    assert all(row["now"].startswith("The prediction is ") and row["proof"] for row in found["rows"])
    write_report(model, table_of(columns), page)
    assert "recourse" not in Page(page).content
    with pytest.raises(ConfigError, match="Did you mean 'f1'"):
        write_report(model, table_of(columns), page, recourse={"target": float(low), "fixed": ["f11"]})
