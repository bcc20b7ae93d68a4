"""The page about exports runs."""

from pathlib import Path

import pytest

from tests.test_readme import run_blocks

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


@pytest.mark.slow
def test_the_page_about_exports_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    run_blocks(PAGE.read_text())
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"trees.onnx", "trees.h", "trees.c", "trees.sql", "trees.query.sql", "trees.json", "trees.nae"}
