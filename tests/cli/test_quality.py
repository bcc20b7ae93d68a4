import json
from pathlib import Path

from nae.quality import Groups
from tests.cli.conftest import Command


def test_quality_is_printed_for_the_test_rows(nae: Command, folder: Path) -> None:
    code, out, err = nae("quality", folder / "price.nae", folder / "homes.parquet", "--target", "price")
    assert (code, err) == (0, "")
    assert "On 60 rows that the model was not trained on" in out
    assert "RMSE" in out
    found = json.loads(nae("quality", folder / "price.nae", folder / "homes.parquet", "--json")[1])
    assert found["rows"] == 60
    assert found["measures"][0]["name"] == "RMSE"
    assert "Calibration error" in nae("quality", folder / "sold.nae", folder / "homes.parquet")[1]
    found = json.loads(nae("quality", folder / "sold.nae", folder / "homes.parquet", "--json")[1])
    assert found["reliability"]["label"] == "yes"


def test_quality_by_group_need_not_be_by_a_feature(nae: Command, folder: Path) -> None:
    code, out, _ = nae("quality", folder / "sold.nae", folder / "homes.parquet", "--by", "garden", "--class", "no")
    assert code == 0
    assert "by garden" in out
    assert "Rates are those of the class 'no'." in out
    words = ("--by", "price", "--by", "town", "--bins", 2)
    code, out, _ = nae("quality", folder / "sold.nae", folder / "homes.parquet", *words, "--json")
    assert code == 0
    assert Groups.from_dict(json.loads(out)).by == ("price", "town")
    assert "(small)" in nae("quality", folder / "sold.nae", folder / "homes.parquet", *words)[1]


def test_wrong_words_exit_with_2(nae: Command, folder: Path) -> None:
    assert nae("quality", folder / "price.nae", folder / "homes.parquet", "--by", "twon")[0] == 2
    code, _, err = nae("quality", folder / "price.nae", folder / "homes.parquet", "--class", "x")
    assert code == 2
    assert "--class chooses one of two classes" in err
