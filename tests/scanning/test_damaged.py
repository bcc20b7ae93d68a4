"""Damaged files are refused in a sentence, in pieces as well."""

from pathlib import Path

import pytest

from nae import scan
from nae.errors import DataError
from tests.cli.test_reading import arrow_with_wrong_offsets


def read_all(path: Path) -> None:
    rows = scan(str(path))
    for _ in rows.batches(rows.columns):
        pass


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("t.csv", "size\n1\n".encode("utf-16")[:-1], "t.csv cannot be read: .*truncated data"),
        ("t.csv", b"size\0,kind\n1,a\n", "t.csv must be a table; it is neither text"),
        ("t.csv.gz", b"size,kind\n1,a\n", "t.csv.gz cannot be read: zlib"),
        ("t.arrow", arrow_with_wrong_offsets(), "t.arrow cannot be read: .*[Oo]ffset"),
    ],
)
def test_a_damaged_file_is_refused(name: str, content: bytes, match: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=match):
        read_all(tmp_path / name)
