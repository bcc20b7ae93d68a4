"""The record of edits: who changed what, when and why; quality, balance and promises before and after."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nae
from nae import NAEClassifier, NAERegressor
from nae.editing import Edit, history
from nae.editing.promises import joined, settled
from nae.encoding import Category, Number
from nae.errors import ConfigError, DataError, FormatError, UserError
from nae.quality import measure
from nae.tables import TableModel, TrainingSummary
from nae.training import make_loss
from tests.laws.models import make_model, make_table

SIGNED = {"who": "risk team", "why": "agreed limit"}
FEATURES = (
    Number("income", np.arange(6.0)),
    Number("age", np.array([0.0, 10.0, 15.0, 30.0]), has_missing=True),
    Category("town", ("Ulm", "Köln"), ("Aalen", "Bonn")),
    Number("garden", np.array([0.0, 1.0]), is_boolean=True),
)
FAST: dict[str, Any] = {"n_members": 1, "n_experts": 2, "hidden_dim": 8, "max_epochs": 2, "random_state": 0}


@pytest.fixture
def model() -> TableModel:
    return make_model(np.random.default_rng(0), features=FEATURES, n_members=2)


def promising(model: TableModel, **promises: Any) -> TableModel:
    return replace(model, training=replace(model.training, constraints=promises))


def test_the_record_says_who_changed_what_when_and_why(model: TableModel) -> None:
    began = datetime.now(UTC).replace(microsecond=0)
    edited = (
        nae.edit(model, **SIGNED).cap("town", 0.05).pin("income", at=2, who="Ethics board", why="not asked any more")
    )
    first, second = edited.record
    assert (first.what, first.feature, first.arguments, first.who, first.why) == (
        *("cap", "town", {"limit": 0.05}),
        *("risk team", "agreed limit"),
    )
    assert (second.what, second.arguments, second.who) == ("pin", {"at": 2}, "Ethics board")
    assert began <= datetime.fromisoformat(first.when) <= datetime.now(UTC)
    assert first.title == "cap town (limit=0.05)"
    assert repr(edited).splitlines()[1] == f"  cap town (limit=0.05), by risk team, {first.when}: agreed limit"
    assert "Proven: town alone moves the score by at most 0.05." in first.text
    assert "predictions need not add up to the targets any longer" in first.text
    assert edited.text.splitlines()[1].startswith("pin income (at=2), by Ethics board, ")


def test_a_file_keeps_the_record(model: TableModel, tmp_path: Path) -> None:
    edited = nae.edit(model, **SIGNED).set_level("town", "Ulm", np.float64(0.5)).drop("age").smooth("income", 2)
    edited.model.save(tmp_path / "m.nae")
    loaded = nae.load(tmp_path / "m.nae")
    assert history(loaded) == edited.record
    more = nae.edit(loaded, **SIGNED).monotone("income", -1)
    assert more.record[:3] == edited.record
    assert [one.what for one in more.record] == ["set_level", "drop", "smooth", "monotone"]
    assert json.loads(json.dumps(loaded.training.to_dict())) == loaded.training.to_dict()
    assert nae.load(tmp_path / "m.nae", verify=True).training == loaded.training  # what the edits promise is proven


def test_every_edit_names_the_tables_it_began_with_and_those_it_made(model: TableModel) -> None:
    edited = nae.edit(model, **SIGNED).drop("age").cap("town", 1.0)
    first, second = edited.record
    assert first.after == second.before
    assert len({first.before, first.after, second.after}) == 3
    other = replace(edited.model, intercept=edited.model.intercept + 1e-9)
    assert nae.edit(other, **SIGNED).drop("age").record[-1].before != second.after
    assert nae.edit(edited.model, **SIGNED).drop("age").record[-1].before == second.after


def test_a_model_without_edits_has_none(model: TableModel) -> None:
    assert history(model) == ()
    assert nae.edit(model).record == ()
    assert "edits" not in model.training.to_dict()


def test_entries_of_a_newer_version_are_passed_over(model: TableModel) -> None:
    entry = nae.edit(model, **SIGNED).drop("age").record[0].to_entry()
    assert Edit.of(entry | {"of a newer one": 1}).to_entry() == entry
    with pytest.raises(FormatError, match="lacks an entry"):
        Edit.of({name: value for name, value in entry.items() if name != "found"})
    assert TrainingSummary.from_dict({"edits": [entry]}).edits == (entry,)


@pytest.mark.parametrize("missing", ["who", "why"])
def test_an_edit_needs_a_person_and_a_reason(model: TableModel, missing: str) -> None:
    given = {name: value for name, value in SIGNED.items() if name != missing}
    with pytest.raises(ConfigError, match=f"An edit is recorded with {missing}; got None. Pass {missing}="):
        nae.edit(model, **given).drop("age")
    with pytest.raises(ConfigError, match=f"recorded with {missing}; got '  '"):
        nae.edit(model, **given).drop("age", **{missing: "  "})


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (lambda one: one.drop("agee"), "No feature is called 'agee'. Did you mean 'age'?"),
        (lambda one: one.cap("town", -1), "A cap must be a number of at least 0, in units of the score; got -1."),
        (lambda one: one.cap("town", np.inf), "got inf"),
        (lambda one: one.cap("town", True), "got True"),
        (lambda one: one.smooth("town", 1), "needs a number; 'town' is a category. Use cap, drop or set_level"),
        (lambda one: one.smooth("garden", 1), "at least three knots; 'garden' has 2"),
        (lambda one: one.smooth("age", 0), "must be a positive number; got 0."),
        (lambda one: one.monotone("town"), "'town' is a category"),
        (lambda one: one.monotone("age", "up"), "must be 'increasing' (+) or 'decreasing' (-); got 'up' for 'age'."),
        (
            lambda one: one.pin("age", at="old"),
            "'age' is pinned at a finite number, or at None for missing; got 'old'.",
        ),
        (lambda one: one.pin("age", at=np.nan), "got nan"),
        (lambda one: one.pin("town", at="Kölln"), "'town' has no level 'Kölln'. Did you mean 'Köln'?"),
        (
            lambda one: one.set_level("town", "Bonn", 1),
            "'Bonn' of 'town' shares that of 2 rare levels. Name it 'other'",
        ),
        (
            lambda one: one.set_level("age", 10, 1),
            "Only missing values of a number have an effect of their own; got 10",
        ),
        (lambda one: one.set_level("town", "Ulm", [1, 2]), "one per output (1); got [1, 2]"),
        (lambda one: one.set_level("town", "Ulm", np.nan), "must be a finite number"),
    ],
)
def test_an_edit_that_makes_no_sense_is_refused(model: TableModel, edit: Any, error: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(error)):
        edit(nae.edit(model, **SIGNED))


def test_levels_have_several_names(model: TableModel) -> None:
    one = nae.edit(model, **SIGNED)
    for name, level, row in (
        ("town", "other", {"town": "Bonn"}),
        ("town", "unseen", {"town": "Rom"}),
        ("town", "missing", {"town": None}),
        ("age", None, {"age": None}),
        ("age", "missing", {"age": None}),
        ("garden", True, {"garden": True}),
    ):
        rows = [{"income": 1.0, "age": 2.0, "town": "Ulm", "garden": False} | row]
        assert one.set_level(name, level, 0.25).model.contributions(rows).feature(name) == pytest.approx(0.25)
    rare = one.pin("town", at="Bonn").model.contributions([{"income": 1.0, "age": 2.0, "town": "Ulm", "garden": False}])
    assert rare.feature("town") == model.contributions(
        [{"income": 1.0, "age": 2.0, "town": "Aalen", "garden": False}]
    ).feature("town")


def test_promises_that_still_hold_are_kept_and_others_dropped_with_a_reason(model: TableModel) -> None:
    made = nae.edit(model, **SIGNED).monotone("income", keep_interactions=False).cap("town", 0.5)
    assert made.model.training.constraints == {"monotone": {"income": "+"}, "max_effect": {"town": 0.5}}
    tighter = made.cap("town", 0.2).model.training.constraints
    assert tighter["max_effect"] == {"town": 0.2}
    wider = made.cap("town", 0.9)
    assert wider.model.training.constraints["max_effect"] == {"town": 0.5}
    turned = made.monotone("income", "-").model.training.constraints
    assert turned["monotone"] == {"income": "-"}
    broken = made.set_level("town", "Ulm", 9.0)
    assert broken.model.training.constraints == {"monotone": {"income": "+"}}
    (reason,) = broken.record[-1].dropped
    assert reason.startswith(
        "The promise max_effect of 'town' is dropped. Refuted: town alone moves the score by at most"
    )
    assert reason in broken.text


def test_promises_of_a_fit_are_certified_again() -> None:
    X = np.random.default_rng(0).uniform(size=(200, 2))
    fit = NAERegressor(monotonic_cst=[1, 0], convex=["x1"], **FAST).fit(X, X.sum(axis=1))
    one = nae.edit(fit, X, X.sum(axis=1), **SIGNED)
    kept = {"monotone": {"x0": "+"}, "curved": {"x1": "convex"}}
    assert one.smooth("x0", 3.0).smooth("x1", 3.0).model.training.constraints == kept
    assert one.drop("x0").model.certify().all_proven


def test_a_promise_that_cannot_be_checked_is_dropped(model: TableModel) -> None:
    found = settled(promising(model), {"of a newer version": {"age": 1}, "isolated": ["gone"], "output": "score"})
    assert found.kept == {}
    assert found.dropped[0].startswith("The promise of a newer version is dropped. A promise must be one of ")
    assert found.dropped[1].startswith("The promise isolated of 'gone' is dropped. No feature is called 'gone'.")
    assert joined({"isolated": ["a"], "output": "b"}, {"isolated": ["a", "c"]}) == {
        "isolated": ["a", "c"],
        "output": "b",
    }


def test_what_was_measured_before_is_forgotten(model: TableModel) -> None:
    known = model.with_training(quality={"RMSE": 1.0}, baseline_quality={"RMSE": 2.0}, table_error=0.1, n_rows=7)
    found = nae.edit(replace(known, training=replace(known.training, intercept_shift=(0.5,))), **SIGNED).drop("age")
    training = found.model.training
    assert (training.quality, training.table_error, training.intercept_shift, training.n_rows) == (None, None, None, 7)


LOSSES = ["squared", "absolute", "huber", "quantile", "poisson", "tweedie"]


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_balance_and_measure_an_edited_regression(loss: str) -> None:
    random = np.random.default_rng(0)
    X = random.uniform(size=(300, 3))
    y = np.exp(X[:, 0] + random.normal(size=300))
    weight, offset = random.integers(0, 3, 300).astype(float), random.uniform(-1, 0, 300)
    fit = NAERegressor(loss, **FAST).fit(X, y, sample_weight=weight, offset=offset)
    edited = nae.edit(fit, X, y, sample_weight=weight, offset=offset, **SIGNED).drop("x0").cap("x1", 0.1)
    predicted = edited.model.predict(X, offset=offset)
    if make_loss(loss).link == "log" or loss == "squared":
        assert weight @ predicted == pytest.approx(weight @ y, rel=1e-6)
    else:
        spread = y.std()
        level = {"quantile": 0.5, "absolute": 0.5}.get(loss)
        if level is not None:
            assert weight @ (predicted > y) / weight.sum() == pytest.approx(level, abs=0.01)
        else:
            delta = edited.model.training.huber_threshold[0]
            assert weight @ np.clip(predicted - y, -delta, delta) == pytest.approx(0, abs=1e-6 * spread * weight.sum())
    before, after = edited.quality
    measured = measure(edited.model, X, y, sample_weight=weight, offset=offset)
    assert {one.name: one.value for one in after} == pytest.approx({one.name: one.value for one in measured})
    entry = edited.record[-1]
    assert entry.quality_after == {one.name: one.value for one in after}
    assert edited.record[0].quality_before == {one.name: one.value for one in before}
    assert entry.is_balanced
    assert "The intercept was solved for again on these rows." in entry.text
    assert "Quality on these rows: " in entry.text
    assert edited.model.training.intercept_shift is not None
    shapes = {shape.name: shape for shape in edited.model.explain_global().features}
    assert not shapes["x0"].importance.any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_balance_an_edited_classifier(n_classes: int) -> None:
    random = np.random.default_rng(0)
    X = random.uniform(size=(300, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] * n_classes).astype(int)]
    fit = NAEClassifier(class_weight="balanced", **FAST).fit(X, y)
    edited = nae.edit(fit, X, y, **SIGNED).cap("x0", 0.5)
    total = edited.model.predict_proba(X).sum(axis=0)
    np.testing.assert_allclose(total, [(y == name).sum() for name in fit.classes_], rtol=1e-6)
    assert edited.model.training.constraints == {"max_effect": {"x0": 0.5}}
    assert edited.model.certify().all_proven
    if n_classes == 3:
        assert edited.model.certify(max_effect={"x0": 0.5}, output="b").all_proven
        with pytest.raises(ConfigError, match="one score; the model has 3 classes"):
            edited.monotone("x0")


def test_quantiles_stay_in_order() -> None:
    random = np.random.default_rng(0)
    X = random.uniform(size=(300, 2))
    y = X[:, 0] + random.normal(size=300)
    fit = NAERegressor("quantile", quantile=[0.1, 0.5, 0.9], **FAST).fit(X, y)
    one = nae.edit(fit, X, y, **SIGNED)
    for edited in (one.cap("x0", 0.1), one.monotone("x0"), one.smooth("x1", 5.0), one.pin("x1", at=0.2)):
        predicted = edited.model.predict(random.uniform(-1, 2, (500, 2)))
        assert (np.diff(predicted, axis=1) >= 0).all()
        below = (y[:, None] < edited.model.predict(X)).mean(axis=0)
        np.testing.assert_allclose(below, [0.1, 0.5, 0.9], atol=0.05)


@pytest.mark.parametrize("has_truth", [False, True])
def test_an_edit_of_quantiles_leaves_other_features_alone(*, has_truth: bool) -> None:
    random = np.random.default_rng(0)
    X = random.uniform(size=(300, 3))
    y = X[:, 0] + (0.1 + X[:, 1]) * random.normal(size=300)
    fit = NAERegressor("quantile", quantile=[0.1, 0.5, 0.9], **FAST).fit(X, y)
    one = nae.edit(fit, X, y if has_truth else None, **SIGNED)
    before = fit.contributions(X).values
    for edited in (one.cap("x2", 0.1), one.monotone("x2"), one.smooth("x2", 5.0), one.pin("x2", at=0.2)):
        assert edited.model.certify(ordered=True).all_proven
        found = edited.model.contributions(X).values
        assert np.abs(found - before)[:, :2].max() <= np.abs(found - before)[:, 2].max()
    untouched = one.smooth("x2", 1e-12).model.predict(X)
    np.testing.assert_allclose(untouched, fit.predict(X), atol=1e-3)


def test_an_estimator_is_copied_with_the_edited_model(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(size=(100, 2))
    fit = NAERegressor(**FAST).fit(X, X[:, 0])
    edited = nae.edit(fit, X, X[:, 0], **SIGNED).drop("x0")
    assert edited.estimator.model_ is edited.model
    assert fit.model_.training.edits is None
    edited.estimator.save(tmp_path / "e.nae")
    loaded = NAERegressor.load(tmp_path / "e.nae")
    assert history(loaded.model_) == edited.record
    np.testing.assert_array_equal(loaded.predict(X), edited.model.predict(X))
    with pytest.raises(UserError, match="Use model"):
        _ = nae.edit(fit.model_).estimator


def test_rows_that_make_no_sense_are_refused(model: TableModel) -> None:
    table = make_table(np.random.default_rng(0), model.schema, 5)
    with pytest.raises(UserError, match="belong to the rows X; X is None"):
        nae.edit(model, y=[1.0])
    with pytest.raises(DataError, match="the table has none"):
        nae.edit(model, table.take(np.arange(0)))
    with pytest.raises(UserError, match="Pass edit"):
        _ = nae.edit(model, table, **SIGNED).drop("age").quality


def test_rows_without_a_target_measure_the_change_and_leave_the_intercept(model: TableModel) -> None:
    table = make_table(np.random.default_rng(0), model.schema, 50)
    edited = nae.edit(model, table, **SIGNED).drop("age")
    moved = np.abs(edited.model.decision_function(table) - model.decision_function(table))
    entry = edited.record[0]
    assert (entry.n_rows, entry.mean_change, entry.largest_change) == pytest.approx((50, moved.mean(), moved.max()))
    assert not entry.is_balanced
    assert edited.model.intercept == model.intercept
    assert edited.model.statistics is not None
    assert nae.edit(model, **SIGNED).drop("age").model.statistics is None


def test_a_compiled_model_stays_compiled(model: TableModel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel: Any = object()
    monkeypatch.setattr(TableModel, "compile", lambda one: replace(one, kernel=kernel))
    assert nae.edit(replace(model, kernel=kernel), **SIGNED).drop("age").model.kernel is kernel
    assert nae.edit(model, **SIGNED).drop("age").model.kernel is None
