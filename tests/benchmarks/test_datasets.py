from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from benchmarks.datasets import DATASETS, Dataset, dataset_named, load, split
from nae.errors import ConfigError, DataError
from tests.benchmarks.generated import make_split, make_table, write_table


def test_there_are_fifteen_tables_of_three_tasks_each_named_once() -> None:
    assert len({dataset.name for dataset in DATASETS}) == len(DATASETS) == 15
    assert {dataset.task for dataset in DATASETS} == {"regression", "binary", "multiclass"}


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.name)
def test_a_table_is_read_from_the_folder_that_the_environment_names(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path, dataset.name, make_table(dataset.task))
    monkeypatch.setenv("NAE_DATA", str(tmp_path))
    if dataset.n_leading_train is None:
        found = load(dataset)
        assert [len(part) for part in (found.train, found.validation, found.test)] == [280, 40, 80]
        assert list(found.train.X.columns) == ["size", "age [years]", "grade", "colour"]
    else:
        with pytest.raises(DataError, match=r"must have more than 52,397 rows; it has 400\."):
            load(dataset)


def test_without_a_folder_the_message_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAE_DATA", raising=False)
    with pytest.raises(ConfigError, match=r"NAE_DATA must name the folder of the suite's Parquet files; it is not set"):
        load(dataset_named("housing"))


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a folder that holds housing\.parquet"):
        load(dataset_named("housing"), tmp_path)


def test_a_table_without_target_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0, 2.0]}).to_parquet(tmp_path / "housing.parquet")
    with pytest.raises(DataError, match="must have a column 'target'"):
        load(dataset_named("housing"), tmp_path)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'housing'"):
        dataset_named("houses")


def test_housing_is_divided_as_in_the_paper() -> None:
    X, y = make_table("regression", 1000)
    found = split(dataset_named("housing"), X, y)
    rest, test = train_test_split(np.arange(1000), test_size=0.2, random_state=0)
    train, validation = train_test_split(rest, test_size=0.125, random_state=0)
    for part, rows in ((found.train, train), (found.validation, validation), (found.test, test)):
        np.testing.assert_array_equal(part.y, y[rows])
        pd.testing.assert_frame_equal(part.X, X.iloc[rows].reset_index(drop=True))


def test_the_rows_after_the_publishers_training_file_are_for_testing() -> None:
    X, y = make_table("regression")
    found = split(Dataset("dated", "regression", "Dated", n_leading_train=300), X, y)
    np.testing.assert_array_equal(found.test.y, y[300:])
    assert sorted(found.all_train.y) == sorted(y[:300])


def test_classes_have_equal_shares_in_every_part_and_are_counted_from_zero() -> None:
    found = make_split("multiclass", 600)
    assert found.n_classes == 3
    for part in (found.train, found.validation, found.test):
        shares = np.bincount(part.y) / len(part)
        np.testing.assert_allclose(shares, 1 / 3, atol=0.02)


def test_parts_share_no_row() -> None:
    X, y = make_table("regression")
    found = split(Dataset("numbered", "regression", "Numbered"), X.assign(row=np.arange(len(y), dtype=float)), y)
    rows = np.concatenate([part.X["row"] for part in (found.train, found.validation, found.test)])
    assert sorted(rows) == list(range(len(y)))
