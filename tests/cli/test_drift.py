import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from nae.monitoring import Drift
from tests.cli.conftest import Command, make_table


def test_rows_of_the_same_table_exit_with_0(nae: Command, folder: Path) -> None:
    code, out, err = nae("drift", folder / "price.nae", folder / "homes.parquet")
    assert (code, err) == (0, "")
    assert "within chance" in out
    assert "No feature drifted in 300 rows. The mean score did not drift." in out


def test_rows_that_drifted_exit_with_1_and_say_why(nae: Command, folder: Path, tmp_path: Path) -> None:
    table = make_table()
    moved = pa.array(np.full(300, "Bonn").tolist())
    pa.parquet.write_table(table.set_column(table.column_names.index("town"), "town", moved), tmp_path / "new.parquet")
    code, out, err = nae("drift", folder / "price.nae", tmp_path / "new.parquet")
    assert (code, err) == (1, "")
    assert "1 of 3 features drifted in 300 rows: town." in out
    assert "town drifted: 100 % of its values were never seen in training" in out
    assert nae("drift", folder / "price.nae", tmp_path / "new.parquet", "--limit", 99)[0] == 0
    code, out, _ = nae("drift", folder / "price.nae", tmp_path / "new.parquet", "--json")
    assert code == 1
    assert Drift.from_dict(json.loads(out)).drifted == ("town",)


def test_rows_can_be_compared_with_those_of_another_file(nae: Command, folder: Path) -> None:
    words = ("drift", folder / "price.nae", folder / "homes.parquet", "--reference", folder / "homes.parquet")
    code, out, _ = nae(*words)
    assert code == 0
    assert "300 rows against 300: within chance" in out


def test_errors_exit_with_2(nae: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("size,town\n1,Ulm\n")
    code, out, err = nae("drift", folder / "price.nae", tmp_path / "other.csv")
    assert (code, out) == (2, "")
    assert "garden" in err
    assert nae("drift", folder / "price.nae", folder / "homes.parquet", "--level", 2)[0] == 2
