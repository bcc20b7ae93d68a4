"""The page about decisions says what the code says."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "decisions_with_models.md"
SECTIONS = ("Why: reasons", "Which features decide alone", "On the scale of the prediction")


@pytest.mark.slow
@pytest.mark.skipif("NAE_DATA" not in os.environ, reason="NAE_DATA does not name the folder with the tables")
def test_reasons_on_the_page_are_those_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    page, names = PAGE.read_text(), dict[str, Any]()
    for title in SECTIONS:
        section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
        blocks = re.findall(r"^```(\w*)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
        for _, block in (one for one in blocks if one[0] == "python"):
            exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102
        printed = capsys.readouterr().out
        assert [text for language, text in blocks if not language and text.strip() not in printed] == []
    found = names["found"]
    assert found.score[:, 0] == pytest.approx(found.prediction[:, 0], abs=1e-9)
