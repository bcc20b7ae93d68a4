"""Fitting from files gives what fitting in memory gives: the same model where it all fits in one block."""

import tracemalloc
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest
from pyarrow import feather

import nae
from nae import NAEClassifier, NAERegressor
from nae.engines.native import NativeEngine
from nae.engines.torch import TorchEngine
from nae.errors import ConfigError, DataError, NAEWarning
from nae.native import is_here, reason

N_ROWS = 900
FEATURES = ["amount", "count", "town", "is_new"]
FAST = {"random_state": 0, "n_members": 2, "n_experts": 2, "hidden_dim": 8, "max_epochs": 3, "n_jobs": 1}


def make_table(n_rows: int = N_ROWS) -> pa.Table:
    """Return numbers, whole numbers, text and booleans, some missing, with a number and a class to predict."""
    random = np.random.default_rng(0)
    amount, count = random.normal(size=n_rows), random.integers(0, 6, n_rows)
    town = random.choice(np.array(["Ulm", "Köln", None], dtype=object), n_rows)
    y = amount * np.where(count > 2, 1, -1) + 0.1 * random.normal(size=n_rows)
    return pa.table(
        {
            "amount": pa.array(amount, mask=random.random(n_rows) < 0.05),
            "count": count,
            "town": pa.array(town.tolist()),
            "is_new": pa.array((random.random(n_rows) < 0.5).tolist()),
            "weight": random.integers(0, 3, n_rows).astype(float),
            "exposure": random.normal(0, 0.2, n_rows),
            "y": y,
            "claims": random.poisson(np.exp(0.3 * amount)),
            "size": np.where(y > 1, "large", np.where(y < -1, "small", "middle")).tolist(),
        }
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return make_table()


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    place = tmp_path_factory.mktemp("parts")
    pa.parquet.write_table(table.slice(0, 400), place / "a.parquet")
    pa.parquet.write_table(table.slice(400), place / "b.parquet", row_group_size=150)
    return place


def scan_of(folder, *others: str, **options: object):
    return nae.scan(folder / "*.parquet", columns=[*FEATURES, *others], **options)


def assert_same_model(one, other) -> None:
    """Check that everything a model holds and remembers is the same, bit for bit."""
    mine, theirs = one.model_, other.model_
    assert mine.schema.to_dict() == theirs.schema.to_dict()
    np.testing.assert_array_equal(mine.schema.knots, theirs.schema.knots)
    for name in ("experts", "intercept"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_array_equal(mine.gate.terms, theirs.gate.terms)
    for name, array in mine.statistics.to_arrays().items():
        np.testing.assert_array_equal(array, theirs.statistics.to_arrays()[name], err_msg=name)
    assert one.history_.column("loss") == other.history_.column("loss")
    assert one.history_.column("validation") == other.history_.column("validation")
    own, others = mine.training.to_dict(), theirs.training.to_dict()
    assert "data_sha256" in own.keys() & others.keys()
    assert own | others == others | own  # what both remember is the same


CASES = {
    "numbers": (NAERegressor, {}, "y", None, None),
    "weights": (NAERegressor, {}, "y", "weight", None),
    "offset": (NAERegressor, {"loss": "poisson"}, "claims", None, "exposure"),
    "classes": (NAEClassifier, {}, "size", None, None),
    "dial": (NAERegressor, {"additivity": 0.3}, "y", None, None),
}


@pytest.mark.parametrize("case", CASES)
def test_one_block_gives_the_model_of_memory(table, folder, case):
    kind, params, y, weight, offset = CASES[case]
    others = [name for name in (y, weight, offset) if name]
    streamed = kind(**FAST | params).fit(scan_of(folder, *others), y=y, sample_weight=weight, offset=offset)
    resident = kind(**FAST | params).fit(
        table.select(FEATURES),
        table.column(y).to_numpy(),
        sample_weight=None if weight is None else table.column(weight).to_numpy(),
        offset=None if offset is None else table.select([offset]),
    )
    assert_same_model(streamed, resident)


def test_models_that_differ_are_told_apart(table, folder):
    one = NAERegressor(**FAST).fit(scan_of(folder, "y"), y="y")
    other = NAERegressor(**FAST | {"random_state": 1}).fit(scan_of(folder, "y"), y="y")
    with pytest.raises(AssertionError):
        assert_same_model(one, other)


def test_few_rows_are_fitted_as_in_memory(table):
    few = table.slice(0, 100)
    streamed = NAERegressor(**FAST).fit(nae.scan(ds.dataset(few.select([*FEATURES, "y"]))), y="y")
    resident = NAERegressor(**FAST).fit(few.select(FEATURES), few.column("y").to_numpy())
    assert_same_model(streamed, resident)


@pytest.mark.slow
@pytest.mark.parametrize("n_members", [1, 2])
def test_several_blocks_learn_as_well_as_memory(table, folder, n_members):
    params = FAST | {"n_members": n_members, "max_epochs": 25, "batch_size": 64, "learning_rate": 1e-2}
    streamed = NAERegressor(**params).fit(scan_of(folder, "y", block_rows=200), y="y")
    resident = NAERegressor(**params).fit(table.select(FEATURES), table.column("y").to_numpy())
    X, y = table.select(FEATURES), table.column("y").to_numpy()
    errors = [float(np.sqrt(np.mean((one.predict(X) - y) ** 2))) for one in (streamed, resident)]
    assert errors[0] < 0.5 * y.std()
    assert errors[0] == pytest.approx(errors[1], rel=0.35)  # 900 rows: another order is another model
    facts, same = streamed.model_.training, resident.model_.training
    assert {"data_sha256", "n_rows"} <= set(facts.to_dict())
    assert facts.data_sha256 == same.data_sha256
    assert facts.n_rows + facts.n_validation_rows * (n_members == 1) == N_ROWS
    assert streamed.model_.statistics.weight[streamed.model_.schema.slots(1)].sum() == pytest.approx(facts.n_rows)


def test_the_same_seed_gives_the_same_model_in_blocks(folder):
    one, other = (NAERegressor(**FAST).fit(scan_of(folder, "y", block_rows=200), y="y") for _ in range(2))
    assert_same_model(one, other)


def test_classes_may_be_balanced_and_numbers_several(table, folder):
    model = NAEClassifier(class_weight="balanced", **FAST).fit(scan_of(folder, "size", block_rows=300), y="size")
    assert model.classes_.tolist() == ["large", "middle", "small"]
    assert model.predict(table.select(FEATURES)).dtype == object
    two = NAERegressor(**FAST).fit(scan_of(folder, "y", "exposure"), y=["y", "exposure"])
    assert two.model_.outputs == ("y", "exposure")


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_constant_target_is_predicted_after_one_epoch(table, loss):
    rows = table.select(FEATURES).append_column("y", pa.array(np.full(N_ROWS, 0.1)))
    model = NAERegressor(loss, **FAST).fit(nae.scan(ds.dataset(rows), block_rows=300), y="y")
    assert (len(model.history_), model.history_.stopped) == (1, "the target is constant")
    np.testing.assert_allclose(model.predict(table.select(FEATURES)), 0.1, rtol=1e-12)


def test_additivity_may_be_chosen_by_itself(folder):
    params = FAST | {"additivity": "auto", "max_epochs": 2}
    model = NAERegressor(**params).fit(scan_of(folder, "y", block_rows=300), y="y")
    assert sum(point.is_chosen for point in model.additivity_path_) == 1


def test_a_fit_may_go_on_and_validate_on_rows_of_its_own(table, folder):
    X, y = table.select(FEATURES), table.column("y").to_numpy()
    model = NAERegressor(**FAST | {"warm_start": True}).fit(scan_of(folder, "y"), y="y", eval_set=(X, y))
    before = model.history_[-1].validation
    model.fit(scan_of(folder, "y"), y="y", eval_set=(X, y))
    assert model.history_[-1].validation < before


def test_a_model_from_files_is_saved_and_explains_itself(table, folder, tmp_path):
    model = NAERegressor(**FAST).fit(scan_of(folder, "y", block_rows=250), y="y")
    model.save(tmp_path / "m.nae")
    again = NAERegressor.load(tmp_path / "m.nae")
    X = table.select(FEATURES)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert nae.load(tmp_path / "m.nae").explain_global().ranked()[0].name in FEATURES


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_an_interrupted_fit_leaves_no_cache(folder, tmp_path, monkeypatch, engine):
    if engine == "native" and not is_here():
        pytest.skip(reason())
    seen = []

    def interrupt(*_: object, **__: object) -> None:
        seen.append(list(tmp_path.iterdir()))
        raise KeyboardInterrupt

    monkeypatch.setattr({"native": NativeEngine, "torch": TorchEngine}[engine], "train_epoch", interrupt)
    scan = scan_of(folder, "y", cache_folder=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        NAERegressor(engine=engine, **FAST).fit(scan, y="y")
    assert seen
    assert list(tmp_path.iterdir()) == []


def test_the_memory_of_both_passes_does_not_grow_with_the_rows(monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nae.estimators.learning._train", stop)
    monkeypatch.setattr("nae.scanning.files._BATCH_ROWS", 1000)
    random, peaks = np.random.default_rng(0), []
    for n_rows in (10_000, 10_000, 40_000):  # the first pays for what is imported
        values = {name: random.integers(0, 50, n_rows).astype(float) for name in "abcdy"}
        scan = nae.scan(ds.dataset(pa.table(values)), block_rows=2000)
        tracemalloc.start()
        with pytest.raises(KeyboardInterrupt):
            NAERegressor(**FAST, batch_size=500).fit(scan, y="y")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.3 * peaks[1]


def test_every_pass_tells_how_far_it_is(folder):
    told = []
    scan = scan_of(folder, "y", block_rows=200).with_progress(lambda *words: told.append(words))
    NAERegressor(**FAST).fit(scan, y="y")
    assert [words for words in told if words[1] == N_ROWS] == [told[len(told) // 2 - 1], told[-1]]
    assert {words[0].split()[0] for words in told} == {"surveying", "writing"}
    assert {words[2] for words in told} == {N_ROWS}


def test_passes_are_shown_when_asked(folder, capsys):
    NAERegressor(**FAST | {"verbose": True}).fit(scan_of(folder, "y"), y="y")
    shown = capsys.readouterr().out
    assert "surveying" in shown
    assert "GB to the cache" in shown
    assert "900 rows" in shown
    assert "epoch" in shown


def test_rows_that_cannot_be_parsed_are_an_error_or_a_warning(tmp_path):
    lines = [f"{i % 7},{i % 5},{i % 3}" for i in range(300)]
    lines[41], lines[99] = "1,2", "1,2,lots"
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"row 42 of .*t\.csv has 2 fields instead of 3"):
        NAERegressor(**FAST).fit(nae.scan(tmp_path / "t.csv"), y="y")
    with pytest.warns(NAEWarning, match=r"2 rows left out that cannot be parsed: row .*t\.csv"):
        model = NAERegressor(**FAST).fit(nae.scan(tmp_path / "t.csv", on_bad_rows="skip"), y="y")
    assert (model.model_.training.n_rows, model.model_.training.n_bad_rows) == (298, 2)


@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("a", "inf", r"Column 'a' must hold finite numbers; row 3 of .*t\.csv holds inf"),
        ("y", "", r"The target 'y' must hold numbers within .*; row 3 of .*t\.csv holds nan"),
        ("w", "-1", r"sample_weight must be finite and not negative; row 3 of .*t\.csv has -1"),
        ("o", "", r"offset must be finite; row 3 of .*t\.csv is not"),
    ],
)
def test_values_that_cannot_be_used_are_named_by_file_and_row(tmp_path, column, value, match):
    rows = [{"a": i, "y": i, "w": 1, "o": 0} for i in range(6)]
    rows[2][column] = value
    text = "\n".join(",".join(str(row[name]) for name in "aywo") for row in rows)
    (tmp_path / "t.csv").write_text(f"a,y,w,o\n{text}\n")
    with pytest.raises(DataError, match=match):
        NAERegressor(**FAST).fit(nae.scan(tmp_path / "t.csv"), y="y", sample_weight="w", offset="o")


def test_what_a_scan_cannot_do_is_said(table, folder):
    with pytest.raises(ConfigError, match="With a scan, y must be the name of a column; got ndarray"):
        NAERegressor(**FAST).fit(scan_of(folder, "y"), y=np.zeros(3))
    with pytest.raises(DataError, match="no column 'yy'"):
        NAERegressor(**FAST).fit(scan_of(folder, "y"), y="yy")
    with pytest.raises(ConfigError, match="encoder='mlp' needs its rows in memory"):
        NAERegressor(**FAST, encoder="mlp").fit(scan_of(folder, "y"), y="y")
    with pytest.raises(ConfigError, match="validation must be None with a scan"):
        NAERegressor(**FAST, validation=[1, 2]).fit(scan_of(folder, "y"), y="y")
    with pytest.raises(DataError, match=r"must hold numbers; got text in row 1 of .*'middle'\. Use NAEClassifier"):
        NAERegressor(**FAST).fit(scan_of(folder, "size"), y="size")
    with pytest.raises(DataError, match="needs a target of at least 0"):
        NAERegressor(loss="poisson", **FAST).fit(scan_of(folder, "y"), y="y")


def test_levels_beyond_counting_share_a_slot_and_are_warned_of(monkeypatch):
    monkeypatch.setattr("nae.scanning.survey.ColumnSurvey.__init__.__kwdefaults__", {"exact": 40, "unit": 1.0})
    random = np.random.default_rng(0)
    names = [f"id {i}" if i % 3 else "often" for i in range(600)]
    table = pa.table({"name": names, "x": random.normal(size=600), "y": random.normal(size=600)})
    with pytest.warns(NAEWarning, match=r"Columns \['name'\] have too many levels to count each one"):
        model = NAERegressor(**FAST, n_knots=8).fit(nae.scan(ds.dataset(table)), y="y")
    feature = model.model_.schema.features[0]
    weight = model.model_.statistics.weight[model.model_.schema.slots(0)]
    assert feature.levels[0] == "often"
    assert weight[0] == pytest.approx(200)
    assert weight[-1] == 0  # nobody trained the slot of unseen levels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(pa.table({"name": ["never seen"], "x": [0.0]}))


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pa.array([b"a", b"b"] * 30), r"row 1 of .*t\.arrow holds b'a', a bytes\. Turn them into text"),
        (pa.array([[1], [2]] * 30), r"Classes must be text, numbers or booleans; row 1 of .*t\.arrow holds array"),
        (pa.array([{"a": 1}] * 60), r"row 1 of .*t\.arrow holds \{'a': 1\}, a dict"),
        (
            pa.UnionArray.from_sparse(pa.array([0] * 60, pa.int8()), [pa.array(range(60))]),
            "The target 'c' must hold numbers or classes; it holds sparse_union",
        ),
    ],
    ids=["bytes", "lists", "structs", "unions"],
)
def test_labels_of_files_are_checked(column, match, tmp_path):
    feather.write_feather(pa.table({"x": np.arange(60.0), "c": column}), tmp_path / "t.arrow")
    with pytest.raises(DataError, match=match):
        NAEClassifier(**FAST).fit(nae.scan(tmp_path / "t.arrow"), y="c")


def test_dates_in_files_are_no_target_of_a_regression(tmp_path):
    moments = pa.array(range(60), pa.timestamp("s"))
    feather.write_feather(pa.table({"x": np.arange(60.0), "when": moments}), tmp_path / "t.arrow")
    with pytest.raises(DataError, match="The target 'when' must hold numbers; got dates or times"):
        NAERegressor(**FAST).fit(nae.scan(tmp_path / "t.arrow"), y="when")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("w", 1e300, r"sample_weight must be 0, or lie in .*; row 3 of .*t\.arrow has 1e\+300"),
        ("o", 1e300, r"offset must lie within ±1e\+100; row 3 of .*t\.arrow does not"),
        ("x", 1e308, r"Column 'x' must hold numbers within ±4\.494e\+307; row 3 of .*t\.arrow holds 1e\+308"),
    ],
)
def test_what_no_model_file_holds_is_refused_from_files(name, value, match, tmp_path):
    columns = {"x": np.arange(60.0), "y": np.arange(60.0), "w": np.ones(60), "o": np.zeros(60)}
    columns[name][2] = value
    feather.write_feather(pa.table(columns), tmp_path / "t.arrow")
    with pytest.raises(DataError, match=match):
        NAERegressor(**FAST).fit(nae.scan(tmp_path / "t.arrow"), y="y", sample_weight="w", offset="o")


def test_views_of_text_in_files_are_text(tmp_path):
    if not hasattr(pa, "string_view"):
        pytest.skip("this pyarrow knows no views of text")
    towns = pa.array(["a", "b"] * 30, pa.string_view())
    feather.write_feather(pa.table({"town": towns, "y": np.arange(60.0)}), tmp_path / "t.arrow")
    model = NAERegressor(**FAST).fit(nae.scan(tmp_path / "t.arrow"), y="y").model_
    assert [one.kind for one in model.schema.features] == ["category"]
