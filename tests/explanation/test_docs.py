import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "explanations.md"


def test_the_page_about_explanations_runs() -> None:
    mpl.use("Agg")
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102
    assert names["overall"].feature("x1").dots is not None
    np.testing.assert_allclose(names["rows"].score[:, 0], names["model"].predict(names["X"]))
    assert names["pair"].is_exact
    assert names["ax"].get_title(loc="left") == "x1"
    plt.close("all")
