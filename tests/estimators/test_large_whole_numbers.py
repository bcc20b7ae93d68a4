"""Whole numbers beyond 2**53: the nearest float where they are fitted as numbers, exact where they name things."""

import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import nae
from nae import NAERegressor
from nae.cli.app import run
from nae.encoding import read_table
from nae.encoding.columns import category_keys, numbers
from nae.encoding.fingerprint import Fingerprint, fingerprint
from nae.errors import NAEWarning
from nae.scanning.delimited import join_tables
from nae.serving.rows import RowReader

FAST = {"n_members": 2, "n_experts": 2, "hidden_dim": 16, "max_epochs": 30, "random_state": 0}
FIRST = 2**60
IDS = [FIRST + i % 3 for i in range(300)]
EFFECT = np.array([0.0, 1.0, 5.0])[np.arange(300) % 3]

CONTAINERS = {
    "pandas": lambda ids: pd.DataFrame({"id": pd.array(ids, dtype="Int64")}),
    "pandas on arrow": lambda ids: pd.DataFrame({"id": pd.Series(ids, dtype="int64[pyarrow]")}),
    "pandas objects": lambda ids: pd.DataFrame({"id": pd.Series(ids, dtype=object)}),
    "polars": lambda ids: pl.DataFrame({"id": ids}),
    "pyarrow": lambda ids: pa.table({"id": ids}),
    "decimals": lambda ids: pa.table({"id": pa.array([None if i is None else decimal.Decimal(i) for i in ids])}),
    "mapping": lambda ids: {"id": ids},
    "records": lambda ids: [{"id": one} for one in ids],
}
ARRAYS = {
    "integers": lambda ids: np.array(ids)[:, None],
    "unsigned": lambda ids: np.array(ids, dtype=np.uint64)[:, None],
    "objects": lambda ids: np.array(ids, dtype=object)[:, None],
    "lists": lambda ids: [[one] for one in ids],
    "lists with floats": lambda ids: [[one, 0.5] for one in ids],
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_identifiers_stay_apart_from_every_container(name):
    for missing in ([], [None]):
        columns = read_table(CONTAINERS[name]([*IDS, *missing]))
        assert category_keys(columns.arrays[0]).tolist() == [*map(str, IDS), *missing]
        expected = [*map(float, IDS), *(np.nan for _ in missing)]
        np.testing.assert_array_equal(numbers(columns.arrays[0], "id"), expected)


@pytest.mark.parametrize("name", ARRAYS)
def test_identifiers_stay_apart_from_every_array(name):
    columns = read_table(ARRAYS[name](IDS))
    assert category_keys(columns.arrays[0]).tolist() == [*map(str, IDS)]


def test_the_smallest_integer_is_large():
    least = -(2**63)
    for table in (np.array([[least]]), pd.DataFrame({"id": [least]})):
        assert category_keys(read_table(table).arrays[0]).tolist() == [str(least)]


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_category_of_identifiers_predicts_each_of_them(name, tmp_path):
    make = CONTAINERS[name]
    model = NAERegressor(feature_types={"id": "category"}, **FAST).fit(make(IDS), EFFECT)
    assert len(model.model_.schema.features[0].levels) == 3
    model.save(tmp_path / "ids.nae")
    new = [FIRST + 2, FIRST + 1, FIRST]
    for one in (model, nae.load(tmp_path / "ids.nae")):
        np.testing.assert_allclose(one.predict(make(new)), [5.0, 1.0, 0.0], atol=0.2)


def test_identifiers_reach_a_served_model_as_json_numbers():
    model = NAERegressor(feature_types={"id": "category"}, **FAST).fit(pa.table({"id": IDS}), EFFECT).model_
    reader = RowReader(model.schema, max_rows=10)
    rows = reader.read(b'{"rows": [{"id": %d}, {"id": %d}]}' % (FIRST + 1, FIRST + 2))
    np.testing.assert_allclose(model.predict(reader.columns(rows)), [1.0, 5.0], atol=0.2)


def read_moments(n_rows=300):
    return pa.table({"when": [FIRST + i * 10**6 + i % 7 for i in range(n_rows)], "x": np.arange(float(n_rows))})


def test_large_whole_numbers_are_fitted_as_the_nearest_float_and_said_once():
    table = read_moments()
    y = np.sin(np.arange(300) / 20)
    match = r"Column 'when' \(such as \d{19}\) holds whole numbers beyond 2\*\*53"
    with pytest.warns(NAEWarning, match=match) as said:
        model = NAERegressor(**FAST).fit(table, y)
    assert len(said) == 1
    found = model.predict(table)
    assert np.corrcoef(found, y)[0, 1] > 0.8
    whole = pd.DataFrame({"when": table["when"].to_pylist(), "x": np.arange(300.0)})
    np.testing.assert_array_equal(model.predict(whole), found)


def test_large_whole_numbers_that_are_floats_are_not_spoken_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NAERegressor(**FAST).fit(pa.table({"when": [FIRST + 1024 * i for i in range(60)]}), np.arange(60.0))


def test_a_scan_fits_what_memory_fits():
    table = read_moments().append_column("id", pa.array(IDS)).append_column("y", pa.array(EFFECT))
    parts = ds.dataset(table.to_batches(max_chunksize=100), schema=table.schema)
    with pytest.warns(NAEWarning, match="Column 'when'") as said:
        model = NAERegressor(feature_types={"id": "category"}, **FAST).fit(nae.scan(parts), "y")
    assert len(said) == 1
    assert sorted(model.model_.schema.features[2].levels) == [str(FIRST + i) for i in range(3)]
    with pytest.warns(NAEWarning, match="Column 'when'"):
        kept = NAERegressor(feature_types={"id": "category"}, **FAST).fit(table.drop_columns("y"), EFFECT)
    assert kept.model_.training.data_sha256 == model.model_.training.data_sha256


@pytest.mark.parametrize("first", [FIRST, 2**63])
def test_delimited_text_that_is_read_in_pieces_keeps_identifiers_apart(tmp_path, capsys, first):
    table, out = tmp_path / "t.csv", tmp_path / "out"
    pd.DataFrame({"id": [first + i % 3 for i in range(300)], "y": EFFECT}).to_csv(table, index=False)
    model = NAERegressor(feature_types={"id": "category"}, n_knots=8, **FAST)
    model.fit(nae.scan(table), "y").save(tmp_path / "m.nae")
    assert len(model.model_.schema.features[0].levels) == 3
    assert run(["predict", str(tmp_path / "m.nae"), str(table), "-o", f"{out}/"]) == 0
    found = pd.read_csv(out / "t.csv")["prediction"].to_numpy()
    np.testing.assert_allclose(found, model.predict({"id": [first + i % 3 for i in range(300)]}), rtol=1e-6)
    assert len(np.unique(found)) == 3


def test_batches_with_and_without_large_whole_numbers_join():
    def of(*values, kind="int64"):
        return pa.table({"id": pa.array(values, kind), "y": pa.array([0.5] * len(values))})

    small, large, half = of(7.0, None, kind="float64"), of(FIRST + 1), of(0.5, kind="float64")
    assert join_tables([small, large])["id"].to_pylist() == [7, None, FIRST + 1]
    assert join_tables([large, of(2**63 + 1, kind="uint64")])["id"].to_pylist() == [FIRST + 1, 2**63 + 1]
    assert join_tables([half, large])["id"].to_pylist() == [0.5, float(FIRST)]
    assert join_tables([small, half])["id"].to_pylist() == [7.0, None, 0.5]


def test_the_command_line_fits_large_whole_numbers(tmp_path, capsys):
    rows = [f"{FIRST + i},{i % 3}" for i in range(300)]
    (tmp_path / "ids.csv").write_text("\n".join(["when,y", *rows]))
    quick = ["--epochs", "2", "--members", "2"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = run(["fit", str(tmp_path / "ids.csv"), "--target", "y", "-o", str(tmp_path / "ids.nae"), *quick])
    assert code == 0, capsys.readouterr().err
    assert nae.load(tmp_path / "ids.nae").feature_names == ("when",)


def test_a_fingerprint_tells_identifiers_apart_whatever_holds_them_and_however_they_are_cut():
    ids = [1, FIRST, FIRST + 1, 5]
    expected = fingerprint(read_table({"id": ids}))
    assert fingerprint(read_table(pa.table({"id": ids}))) == expected
    assert fingerprint(read_table({"id": [1, FIRST, FIRST, 5]})) != expected
    parts = Fingerprint()
    for first in range(4):
        parts.update(read_table(pa.table({"id": ids[first : first + 1]})))
    assert parts.hexdigest() == expected
