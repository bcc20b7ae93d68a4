"""Generated files of the layouts that NODE-GAM's data release has; none of its rows are here."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.datasets import (
    PROTOCOLS,
    Dataset,
    LeaveOneOut,
    Part,
    encode_categories,
    load,
    load_paper,
    protocol_named,
    read_paper,
    statistics,
)
from benchmarks.datasets.files import INCOME_COLUMNS, MIMIC2_CATEGORIES, MIMIC3_COLUMNS, Table, find
from benchmarks.paper.accuracy import at_hand
from benchmarks.paper.runs import DEFAULT, Run
from benchmarks.paper.tables import is_at_hand, read
from nae.errors import ConfigError, DataError
from tests.benchmarks.generated import make_split, make_table, write_table

N_ROWS = 100
random = np.random.default_rng(0)


def write_income(folder: Path) -> Path:
    path = folder / "adult" / "adult.data"
    path.parent.mkdir(parents=True)
    rows = [
        f"{20 + i}, Private, {1000 + i}, 11th, 7, Divorced, ?, Husband, White, Male, 0, 0, 40, Peru, {label}"
        for i, label in zip(range(N_ROWS), [" >50K", "<=50K", "<=50K"] * N_ROWS, strict=False)
    ]
    path.write_text("\n".join(row.replace(",  ", ", ") for row in rows) + "\n\n")
    return path


def write_credit(folder: Path) -> Path:
    path = folder / "credit" / "creditcard.csv"
    path.parent.mkdir(parents=True)
    table = pd.DataFrame(random.normal(size=(N_ROWS, 30)), columns=["Time", *(f"V{i}" for i in range(1, 29)), "Amount"])
    table.assign(Class=np.arange(N_ROWS) % 4 == 0).astype({"Class": int}).to_csv(path, index=False)
    return path


def write_mimic2(folder: Path) -> Path:
    path = folder / "mimic2" / "mimic2.data"
    path.parent.mkdir(parents=True)
    np.savetxt(path, np.column_stack([random.integers(0, 5, (N_ROWS, 17)), np.arange(N_ROWS) % 3 == 0]), fmt="%d")
    return path


def write_mimic3(folder: Path) -> Path:
    path = folder / "mimic3" / "adult_icu.gz"
    path.parent.mkdir(parents=True)
    table = pd.DataFrame(random.normal(size=(N_ROWS, len(MIMIC3_COLUMNS))), columns=list(MIMIC3_COLUMNS))
    table = table.assign(subject_id=np.arange(N_ROWS), mort_icu=(np.arange(N_ROWS) % 5 == 0).astype(int))
    table.loc[3, "lactate"] = np.nan
    path.write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    return path


def write_year(folder: Path) -> Path:
    path = folder / "YEAR" / "data.csv"
    path.parent.mkdir(parents=True)
    years = random.integers(1950, 2010, N_ROWS)
    pd.DataFrame(np.column_stack([years, random.normal(size=(N_ROWS, 90))])).to_csv(path, header=False, index=False)
    return path


WRITERS: dict[str, Callable[[Path], Path]] = {
    "income": write_income,
    "credit": write_credit,
    "mimic2": write_mimic2,
    "mimic3": write_mimic3,
    "year": write_year,
}


def write_folds(folder: Path) -> None:
    for fold in range(5):
        rows = np.arange(N_ROWS)
        np.savetxt(folder / f"test{fold}.txt", rows[rows % 5 == fold], fmt="%d")
        np.savetxt(folder / f"train{fold}.txt", rows[rows % 5 != fold], fmt="%d")


@pytest.mark.parametrize("name", ["income", "credit", "mimic2", "mimic3"])
def test_the_papers_experiments_run_on_placed_files_and_their_own_folds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAE_DATA", str(tmp_path))
    assert not is_at_hand(name)
    write_folds(WRITERS[name](tmp_path).parent)
    assert name in at_hand()
    found = read(Run(name, DEFAULT, fold=1))
    assert len(found.test) == N_ROWS // 5
    assert len(found.train) + len(found.validation) == N_ROWS - N_ROWS // 5


@pytest.mark.parametrize("name", ["income", "credit", "mimic2", "mimic3"])
def test_the_release_is_read_and_divided_by_its_own_folds(name: str, tmp_path: Path) -> None:
    write_folds(WRITERS[name](tmp_path).parent)
    protocol = protocol_named(name)
    table = read_paper(protocol, tmp_path)
    assert table.X.shape == (N_ROWS, protocol.n_features)
    assert sum(table.X[column].dtype.kind == "O" for column in table.X) == protocol.n_categories
    found = load_paper(protocol, 3, folder=tmp_path)
    assert found.is_original
    assert found.division == "the folds of NODE-GAM's release"
    assert [len(part) for part in (found.split.train, found.split.validation, found.split.test)] == [64, 16, 20]
    np.testing.assert_array_equal(found.split.test.y, table.y[np.arange(N_ROWS) % 5 == 3])
    pd.testing.assert_frame_equal(found.split.test.X, table.X.iloc[3::5].reset_index(drop=True))
    assert found.split.train.y.mean() == pytest.approx(found.split.validation.y.mean(), abs=0.05)


@pytest.mark.parametrize("name", ["income", "credit", "mimic2", "mimic3"])
def test_without_the_files_of_folds_they_are_drawn_and_it_is_said(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path)
    protocol = protocol_named(name)
    folds = [load_paper(protocol, fold, folder=tmp_path) for fold in range(5)]
    assert not any(found.is_original for found in folds)
    assert {found.division for found in folds} == {"5 stratified folds, seed 0: the original folds are not at hand"}
    shares = [found.split.test.y.mean() for found in folds]
    assert max(shares) - min(shares) < 0.051
    assert sum(len(found.split.test) for found in folds) == N_ROWS


def test_income_has_names_and_levels_without_blanks(tmp_path: Path) -> None:
    write_income(tmp_path)
    table = read_paper(protocol_named("income"), tmp_path)
    assert tuple(table.X.columns) == INCOME_COLUMNS
    assert table.X["WorkClass"].unique().tolist() == ["Private"]
    assert table.X["Occupation"].unique().tolist() == ["?"]
    np.testing.assert_array_equal(table.y[:4], [1, 0, 0, 1])


def test_the_codes_of_mimic2_are_categories(tmp_path: Path) -> None:
    write_mimic2(tmp_path)
    X = read_paper(protocol_named("mimic2"), tmp_path).X
    assert {column for column in X if X[column].dtype.kind == "O"} == set(MIMIC2_CATEGORIES)


def test_years_last_rows_are_for_testing(tmp_path: Path) -> None:
    folder = write_year(tmp_path).parent
    small = Dataset("year", "regression", "Year", n_leading_train=80)
    protocol = replace(protocol_named("year"), dataset=small)
    drawn = load_paper(protocol, folder=tmp_path)
    assert not drawn.is_original
    assert "a fifth of the rest to validate, seed 0" in drawn.division
    assert [len(part) for part in (drawn.split.train, drawn.split.validation, drawn.split.test)] == [64, 16, 20]
    np.savetxt(folder / "stratified_train_idx.txt", np.arange(10, 80), fmt="%d")
    np.savetxt(folder / "stratified_valid_idx.txt", np.arange(10), fmt="%d")
    found = load_paper(protocol, folder=tmp_path)
    assert found.is_original
    y = read_paper(protocol, tmp_path).y
    for part, rows in ((found.split.validation, y[:10]), (found.split.train, y[10:80]), (found.split.test, y[80:])):
        np.testing.assert_array_equal(part.y, rows)
    assert protocol.metric.label == "MSE"


def test_year_must_have_the_publishers_rows(tmp_path: Path) -> None:
    write_year(tmp_path)
    with pytest.raises(DataError, match="must have more than 463,715 rows; it has 100"):
        load_paper(protocol_named("year"), folder=tmp_path)


def test_the_names_of_the_papers_code_are_found_as_well(tmp_path: Path) -> None:
    path = write_credit(tmp_path / "credit")
    assert find("credit", tmp_path) == path
    assert len(load(protocol_named("credit").dataset, tmp_path).test) == 20


def test_a_table_that_is_not_placed_names_its_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds mimic3\.parquet or mimic3/adult_icu\.gz"):
        load_paper(protocol_named("mimic3"), folder=tmp_path)


@pytest.mark.parametrize("name", ["income", "mimic2", "year"])
def test_a_file_of_another_width_is_refused(name: str, tmp_path: Path) -> None:
    path = WRITERS[name](tmp_path)
    path.write_text("1 2\n3 4\n" if name == "mimic2" else "1,2\n3,4\n")
    with pytest.raises(DataError, match="columns and no header; it has 2"):
        read_paper(protocol_named(name), tmp_path)


def test_columns_that_are_not_the_releases_are_named(tmp_path: Path) -> None:
    path = write_mimic3(tmp_path)
    table = pd.read_csv(path).drop(columns=["lactate", "wbc"])
    path.write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    with pytest.raises(DataError, match=r"it lacks \['lactate', 'wbc'\]"):
        read_paper(protocol_named("mimic3"), tmp_path)
    credit = write_credit(tmp_path)
    pd.read_csv(credit).drop(columns="Class").to_csv(credit, index=False)
    with pytest.raises(DataError, match="must be 'Class'; it is 'Amount'"):
        read_paper(protocol_named("credit"), tmp_path)


def test_income_must_say_who_earns_more(tmp_path: Path) -> None:
    path = write_income(tmp_path)
    path.write_text(path.read_text().replace(">50K", "rich"))
    with pytest.raises(DataError, match="must be '>50K' or '<=50K'"):
        read_paper(protocol_named("income"), tmp_path)


def test_folds_that_share_rows_or_leave_the_table_are_refused(tmp_path: Path) -> None:
    folder = write_credit(tmp_path).parent
    write_folds(folder)
    (folder / "test0.txt").write_text("1\n2\n5\n")
    with pytest.raises(DataError, match="must share no row; they share 2"):
        load_paper(protocol_named("credit"), 0, folder=tmp_path)
    (folder / "test1.txt").write_text("100\n")
    with pytest.raises(DataError, match=r"test1\.txt must be in \[0, 99\]"):
        load_paper(protocol_named("credit"), 1, folder=tmp_path)
    (folder / "test2.txt").unlink()
    with pytest.raises(DataError, match=r"test2\.txt is not in"):
        load_paper(protocol_named("credit"), 2, folder=tmp_path)


def test_folds_are_counted_from_zero_to_four(tmp_path: Path) -> None:
    write_credit(tmp_path)
    with pytest.raises(ConfigError, match=r"A fold must be in \[0, 4\]; got 5"):
        load_paper(protocol_named("credit"), 5, folder=tmp_path)


def test_housing_has_the_papers_rows_for_every_seed(tmp_path: Path) -> None:
    write_table(tmp_path, "housing", make_table("regression"))
    protocol = protocol_named("housing")
    found = load_paper(protocol, 7, folder=tmp_path)
    assert found.is_original
    assert (protocol.repeats, protocol.n_repeats) == ("seed", 10)
    np.testing.assert_array_equal(found.split.test.y, load(protocol.dataset, tmp_path).test.y)


def test_the_sample_of_credit_says_what_it_is() -> None:
    assert "all 492 frauds and 4,920" in protocol_named("credit_sample5412").note
    assert [protocol.dataset.label for protocol in PROTOCOLS if protocol.note] == ["Credit (sample)"]


def test_the_papers_table_of_tables() -> None:
    shapes = {each.dataset.name: (each.n_rows, each.n_features, each.n_categories) for each in PROTOCOLS}
    assert shapes["mimic3"] == (27_348, 57, 0)
    assert len(MIMIC3_COLUMNS) == 57
    with pytest.raises(ConfigError, match="Did you mean 'housing'"):
        protocol_named("houses")


def test_statistics_count_categories_missing_cells_and_classes() -> None:
    X, y = make_table("binary")
    protocol = protocol_named("income")
    found = statistics(protocol, Table(X, y))
    assert (found.n_rows, found.n_features, found.n_categories) == (400, 4, 1)
    assert found.missing_share == X.isna().to_numpy().mean() > 0
    assert found.target == "2 classes, 50 % are 1"
    numbers = Table(X, np.array([1.0, 3.0] * 200))
    assert statistics(protocol_named("housing"), numbers).target == "2 ± 1"


def test_housing_and_income_are_downloaded_where_no_folder_has_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    X, y = make_table("regression")
    bunch = SimpleNamespace(data=X[["size", "grade"]], target=pd.Series(y))
    monkeypatch.setattr("sklearn.datasets.fetch_california_housing", lambda **options: bunch)
    monkeypatch.delenv("NAE_DATA", raising=False)
    for folder in (None, tmp_path):
        assert len(read_paper(protocol_named("housing"), folder)) == 400
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *names, **options: openml_income(39))
    table = read_paper(protocol_named("income"))
    assert len(table) == 32_561
    assert table.X["Occupation"][0] == "?"
    assert table.y.mean() == 1
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *names, **options: openml_income(40))
    with pytest.raises(DataError, match="its order has changed"):
        read_paper(protocol_named("income"))


def openml_income(age: int) -> SimpleNamespace:
    row = (age, "State-gov", 77_516, "BS", 13, "Single", None, "None", "White", "Male", 1, 2, 40, "Peru")
    first = pd.DataFrame([(25, "Private", *row[2:])] * 3)
    data = pd.concat([first, pd.DataFrame([row] * 32_561)], ignore_index=True)
    return SimpleNamespace(data=data, target=pd.Series(["<=50K"] * 3 + [">50K"] * 32_561, dtype="category"))


def test_categories_become_means_of_the_training_targets() -> None:
    X = pd.DataFrame({"c": ["a", "a", "b", "b", "once", None, None], "n": range(7)})
    y = np.array([0.0, 1.0, 2.0, 4.0, 9.0, 5.0, 7.0])
    encoder = LeaveOneOut.fit(X, y)
    found = encoder.transform(pd.DataFrame({"c": ["a", "b", "once", "new", None], "n": [1, 2, 3, 4, 5]}))
    np.testing.assert_allclose(found["c"], [0.5, 3.0, 4.0, 4.0, 6.0])
    np.testing.assert_array_equal(found["n"], [1, 2, 3, 4, 5])


def test_no_row_outside_training_lends_its_target() -> None:
    rows = make_split("binary")
    others = {name: Part(getattr(rows, name).X, 1 - getattr(rows, name).y) for name in ("validation", "test")}
    encoded, again = encode_categories(rows), encode_categories(replace(rows, **others))
    for name in ("train", "validation", "test"):
        pd.testing.assert_frame_equal(getattr(encoded, name).X, getattr(again, name).X)
        assert all(kind.kind == "f" for kind in getattr(encoded, name).X.dtypes)
