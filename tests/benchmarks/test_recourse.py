"""The section about recourse says what was found, what is proven and how long it took."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from benchmarks import recourse
from benchmarks.recourse import Asked, recourse_section
from nae.encoding import Number
from tests.laws.models import make_model


@dataclass(frozen=True)
class Case:
    table: str


def test_a_section_has_a_row_per_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    features = tuple(Number(name, np.linspace(0.0, 1.0, 6)) for name in "abc")
    number = make_model(np.random.default_rng(0), features=features)
    classes = make_model(np.random.default_rng(1), features=features, link="logit")
    monkeypatch.setattr(recourse, "ASKED", {"number": Asked(0.5, {"fixed": ["a"]}), "classes": Asked(None, {})})
    X = pd.DataFrame(np.random.default_rng(2).uniform(size=(4, 3)), columns=list("abc"))
    text = recourse_section([(Case("number"), number, X), (Case("classes"), classes, X), (Case("other"), number, X)])
    lines = [line for line in text.splitlines() if line.startswith(("| number", "| classes"))]
    assert len(lines) == 8
    assert all(line.count("|") == 9 for line in lines)
    assert "other |" not in text
