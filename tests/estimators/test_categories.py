"""Unseen, missing and rare: what the tables hold for values training did not, or hardly, show."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import nae
from nae import NAERegressor
from nae.errors import NAEWarning

FAST = {"n_members": 2, "n_experts": 3, "hidden_dim": 16, "max_epochs": 60, "random_state": 0}
LEVELS = ["a"] * 60 + ["b"] * 30 + ["c"] * 10


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({"level": LEVELS, "x": random.uniform(-1, 1, 100)})


@pytest.fixture(scope="module")
def y(frame) -> np.ndarray:
    return frame["level"].map({"a": 0.0, "b": 3.0, "c": -5.0}).to_numpy() * np.sign(frame["x"].to_numpy()) + 0.3


@pytest.fixture(scope="module")
def model(frame, y) -> NAERegressor:
    return NAERegressor(**FAST).fit(frame, y)


def tables(model: NAERegressor, feature: str) -> tuple[np.ndarray, np.ndarray]:
    slots = model.model_.schema.slots(model.model_.schema.index(feature))
    return model.model_.experts[slots], model.model_.gate.terms[slots]


def test_an_unseen_level_is_the_frequency_weighted_mean_of_the_known_ones(model):
    assert model.model_.schema.features[0].labels == ("a", "b", "c", "missing", "unseen")
    for table in tables(model, "level"):
        expected = np.tensordot([0.6, 0.3, 0.1], table[:3], axes=1)
        np.testing.assert_allclose(table[4], expected, rtol=1e-9, atol=1e-9)
        assert np.abs(table[:3] - expected).max() > 0.01


def test_weights_of_rows_count_in_that_mean(frame, y):
    weight = np.where(frame["level"] == "c", 5.0, 1.0)
    weighted = NAERegressor(**FAST).fit(frame, y, sample_weight=weight)
    for table in tables(weighted, "level"):
        share = np.array([60, 30, 50]) / 140
        order = [weighted.model_.schema.features[0].levels.index(level) for level in "abc"]
        np.testing.assert_allclose(table[4], np.tensordot(share, table[order], axes=1), rtol=1e-9, atol=1e-9)


def test_all_unseen_levels_predict_alike(model, frame):
    rows = frame.iloc[:20]
    one, other = (model.predict(rows.assign(level=level)) for level in ("never", "seen"))
    np.testing.assert_array_equal(one, other)
    assert np.abs(one - model.predict(rows)).max() > 0.01


def test_missing_that_was_never_seen_is_like_unseen(model, frame):
    rows = frame.iloc[:20]
    np.testing.assert_array_equal(model.predict(rows.assign(level=None)), model.predict(rows.assign(level="never")))
    for name in ("level", "x"):
        for table in tables(model, name):
            np.testing.assert_array_equal(table[-2], table[-1])


def test_a_missing_number_never_seen_is_the_mean_over_its_knots(model, frame):
    experts, _ = tables(model, "x")
    weight = model.model_.statistics.weight[model.model_.schema.slots(1)]
    np.testing.assert_allclose(experts[-2], np.tensordot(weight[:-2] / 100, experts[:-2], axes=1), atol=1e-9)
    assert np.isfinite(model.predict(frame.assign(x=np.nan))).all()


def test_missing_that_was_seen_has_an_effect_of_its_own():
    random = np.random.default_rng(1)
    x = random.uniform(-1, 1, 200)
    level = random.choice(["a", "b"], 200)
    frame = pd.DataFrame({"x": np.where(np.arange(200) % 4 == 0, np.nan, x), "level": level})
    frame.loc[np.arange(200) % 5 == 0, "level"] = None
    y = np.where(frame["x"].isna(), 5.0, 0.0) + np.where(frame["level"].isna(), -7.0, 0.0)
    model = NAERegressor(**FAST | {"additivity": 1.0, "max_epochs": 150}).fit(frame, y)
    found = model.contributions(frame)
    gap, given = frame["x"].isna().to_numpy(), frame["x"].notna().to_numpy()
    assert found.feature("x")[gap].mean() - found.feature("x")[given].mean() == pytest.approx(5, abs=0.5)
    gap, given = frame["level"].isna().to_numpy(), frame["level"].notna().to_numpy()
    assert found.feature("level")[gap].mean() - found.feature("level")[given].mean() == pytest.approx(-7, abs=0.7)
    unseen = model.contributions(frame.assign(level="never")).feature("level")
    assert unseen.mean() > found.feature("level")[gap].mean() + 3


def test_rare_levels_share_one_trained_effect():
    random = np.random.default_rng(2)
    level = np.array(["big"] * 100 + ["large"] * 60 + [f"rare {i}" for i in range(40)])
    y = np.where(np.char.startswith(level, "rare"), 4.0, 0.0) + 0.1 * random.normal(size=200)
    frame = pd.DataFrame({"level": level})
    model = NAERegressor(n_knots=3, **FAST | {"max_epochs": 150}).fit(frame, y)
    assert model.model_.schema.features[0].labels == ("big", "large", "other", "missing", "unseen")
    rare = model.predict(pd.DataFrame({"level": ["rare 1", "rare 39"]}))
    assert rare[0] == rare[1] == pytest.approx(4, abs=0.4)
    unseen = model.predict(pd.DataFrame({"level": ["never"]}))[0]
    assert unseen == pytest.approx(0.2 * 4, abs=0.5)


@pytest.mark.parametrize(
    "given", [[1, 2], [1.0, 2.0], ["1", "2"], pd.array([1, 2], dtype="Int64")], ids=["int", "float", "text", "nullable"]
)
def test_numbers_and_their_text_are_the_same_level(given):
    level = np.resize([1, 2], 40)
    frame = pd.DataFrame({"level": level})
    model = NAERegressor(feature_types={"level": "category"}, **FAST | {"max_epochs": 20}).fit(frame, level)
    np.testing.assert_array_equal(model.predict(pd.DataFrame({"level": given})), model.predict(frame.iloc[:2]))


def test_booleans_predict_from_numbers_too():
    frame = pd.DataFrame({"flag": np.resize([True, False], 40)})
    model = NAERegressor(**FAST | {"max_epochs": 20}).fit(frame, frame["flag"].astype(float))
    assert model.model_.schema.features[0].kind == "boolean"
    np.testing.assert_array_equal(model.predict(pd.DataFrame({"flag": [1, 0]})), model.predict(frame.iloc[:2]))


def test_contributions_average_zero_over_the_training_rows(model, frame, y):
    np.testing.assert_allclose(model.contributions(frame).values.mean(axis=0), 0, atol=1e-9)
    weight = np.random.default_rng(3).uniform(0.1, 3, 100)
    weighted = NAERegressor(**FAST).fit(frame, y, sample_weight=weight)
    np.testing.assert_allclose(weight @ weighted.contributions(frame).values, 0, atol=1e-8)


def named(n_levels: int, n_rows: int = 60, *, n_missing: int = 0) -> pd.DataFrame:
    levels = [f"home {i % n_levels}" for i in range(n_rows)] + [None] * n_missing
    return pd.DataFrame({"the home": levels, "x": np.arange(n_rows + n_missing) % 7})


QUICK = FAST | {"n_members": 2, "max_epochs": 1}


@pytest.mark.parametrize("levels", [named(60), named(31), named(31, n_missing=40), named(60).astype("category")])
def test_a_column_that_names_rows_is_warned_of_once(levels):
    said = (
        r"Column 'the home' \((60|31) levels in 60 rows\) looks like an identifier\. It will not generalise: "
        r"drop it \(nae fit --ignore 'the home'\)"
    )
    with pytest.warns(NAEWarning, match=said) as found:
        NAERegressor(**QUICK).fit(levels, levels["x"])
    assert [warning.filename for warning in found] == [__file__]


def test_columns_that_name_rows_are_warned_of_together():
    both = named(60).assign(key=[f"{i:04x}" for i in range(60)])
    with pytest.warns(
        NAEWarning, match=r"Columns 'the home' .*, 'key' .* look like identifiers\. .*: drop them .*--ignore key\)"
    ) as found:
        NAERegressor(**QUICK).fit(both, both["x"])
    assert len(found) == 1


@pytest.mark.parametrize("levels", [named(30), named(20, 22), named(300, 900)])
def test_ordinary_categories_are_not_warned_of(levels):  # warnings are errors here
    NAERegressor(**QUICK).fit(levels, levels["x"])


def test_a_category_that_is_asked_for_is_not_warned_of():
    levels = named(60)
    NAERegressor(**QUICK, feature_types={"the home": "category"}).fit(levels, levels["x"])


def test_numbers_that_differ_in_every_row_are_numbers():
    table = pd.DataFrame({"x": np.arange(60.0)})
    NAERegressor(**QUICK).fit(table, table["x"])


@pytest.mark.parametrize(("n_levels", "n_warnings"), [(60, 1), (30, 0)])
def test_a_scan_is_warned_of_columns_that_name_rows(n_levels, n_warnings):
    rows = nae.scan(ds.dataset(pa.Table.from_pandas(named(n_levels))), block_rows=25)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        NAERegressor(**QUICK).fit(rows, y="x")
    said = [one for one in found if issubclass(one.category, NAEWarning)]  # what other tests left may warn meanwhile
    assert len(said) == n_warnings
    assert all("(60 levels in 60 rows) looks like an identifier" in str(one.message) for one in said)
    package = Path(nae.__file__).parent
    assert not any(Path(one.filename).is_relative_to(package) for one in said)  # it points outside of the library


@pytest.mark.parametrize("is_scanned", [False, True], ids=["in memory", "scanned"])
def test_levels_with_few_rows_share_an_effect(is_scanned):
    random = np.random.default_rng(0)
    names = np.array(["often", "at times", *(f"once {i}" for i in range(40))])
    table = pd.DataFrame({"who": np.repeat(names, [500, 60, *[1] * 40]), "x": random.normal(size=600)})
    table["y"] = table["x"] + (table["who"] == "often")
    model = NAERegressor(**FAST | {"max_epochs": 2})
    if is_scanned:
        model.fit(nae.scan(ds.dataset(pa.Table.from_pandas(table))), y="y")
    else:
        model.fit(table[["who", "x"]], table["y"])
    feature = model.model_.schema.features[0]
    assert feature.levels == ("often", "at times")
    assert len(feature.rare) == 40
    assert model.predict(table[["who", "x"]]).std() > 0


def test_a_column_that_names_every_row_contributes_nothing():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"who": [f"row {i}" for i in range(500)], "x": random.normal(size=500)})
    with pytest.warns(NAEWarning, match="looks like an identifier"):
        model = NAERegressor(**FAST | {"max_epochs": 2}).fit(X, X["x"])
    assert model.model_.schema.features[0].levels == ()
    assert not model.contributions(X).feature("who").any()
