"""The server under load, alone and in company: what the benchmark asks is answered."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.serve_load import run_in_company
from nae import NAERegressor


@pytest.mark.slow
def test_a_server_in_company_answers_rightly_and_drops_nothing(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": np.linspace(0, 1, 100), "b": np.arange(100.0) % 7})
    model = NAERegressor(n_members=1, n_experts=2, max_epochs=2, random_state=0).fit(table, table["a"]).model_
    model.save(tmp_path / "housing.nae")
    given = argparse.Namespace(rounds=1, seconds=1.5, connections=2, idle=6, slow=6)
    alone, beside = run_in_company(tmp_path, table, model.predict, given)
    for line in (alone, beside):
        failed, _, total = line.split("|")[6].strip().partition(" of ")
        assert failed == "0"
        assert int(total.replace(",", "")) > 0
    dropped, _, asked = beside.split("|")[7].strip().partition(" of ")
    assert (dropped, asked) == ("0", "6")
