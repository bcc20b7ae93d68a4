import errno
import re
from contextlib import nullcontext
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pytest

import nae as library
from nae import NAEClassifier
from nae.cli.tune import _short
from nae.cli.writing import write_table
from tests.cli.conftest import Command, make_table
from tests.tuning.calls import read_call

TINY = ["--epochs", "2"]


def test_a_search_prints_settings_to_paste_and_leaves_study_picture_and_model(nae: Command, tmp_path: Path) -> None:
    data = tmp_path / "homes.parquet"
    write_table(make_table(400), str(data))
    words = ("tune", data, "-t", "sold", "--ignore", "price", "-f", tmp_path / "study", *TINY)
    code, out, err = nae(*words, "--trials", 2)
    assert code == 0, err
    assert "320 rows to train and validate on, 80 kept for testing; 'sold' has 2 classes" in err
    assert re.search(r"trial 2 of 2: validation \d", err)
    assert (tmp_path / "study" / "study.log").exists()
    assert (tmp_path / "study" / "front.png").read_bytes().startswith(b"\x89PNG")
    line = next(line for line in out.splitlines() if line.startswith("NAEClassifier("))
    params = NAEClassifier(**read_call(line)[1]).get_params()
    code, out, err = nae(*words, "--trials", 2, "-o", tmp_path / "m.nae", "--quiet")
    assert code == 0, err
    assert line in out
    assert "trial" not in err.replace("2 trials", "")  # both were there already
    model = NAEClassifier.load(tmp_path / "m.nae")
    assert {name: params[name] for name in ("n_experts", "hidden_dim", "additivity")} == {
        name: getattr(model, name) for name in ("n_experts", "hidden_dim", "additivity")
    }
    assert library.load(tmp_path / "m.nae").training.n_test_rows == 80


def test_a_full_disk_leaves_the_older_picture(nae: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(_: object, target: IO[bytes] | Path, **__: object) -> None:
        with target.open("wb") if isinstance(target, Path) else nullcontext(target) as file:
            file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    data, picture = tmp_path / "homes.parquet", tmp_path / "front.png"
    write_table(make_table(200), str(data))
    picture.write_bytes(b"older")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fill)
    code, _, err = nae("tune", data, "-t", "sold", "--ignore", "price", "-f", tmp_path, *TINY, "--trials", 1)
    assert code == 2
    assert f"{picture}: No space left on device" in err
    assert picture.read_bytes() == b"older"


def test_a_setting_that_is_left_to_the_estimator_is_called_its_default() -> None:
    assert [_short(value) for value in (None, "auto", 0.01234, 16)] == ["default", "auto", "0.0123", "16"]


def test_a_loss_of_a_regression_is_no_loss_for_classes(nae: Command, folder: Path, tmp_path: Path) -> None:
    code, _, err = nae("tune", folder / "homes.parquet", "-t", "sold", "--loss", "poisson", "-f", tmp_path)
    assert code == 2
    assert "--loss is for regressions" in err


def test_at_least_one_trial_is_asked_for(nae: Command, folder: Path, tmp_path: Path) -> None:
    code, _, err = nae("tune", folder / "homes.parquet", "-t", "price", "--trials", 0, "-f", tmp_path)
    assert code == 2
    assert "--trials must be at least 1; got 0" in err


def test_settings_are_judged_by_several_seeds_when_asked(nae: Command, tmp_path: Path) -> None:
    data = tmp_path / "homes.parquet"
    write_table(make_table(400), str(data))
    words = ("tune", data, "-t", "price", "-f", tmp_path / "study", "--trials", 1, *TINY)
    code, out, err = nae(*words, "--seeds", 2)
    assert code == 0, err
    assert re.search(r"trial 1 of 1: validation \d+\.\d+ ± \d+\.\d+, weighted additivity", err)
    assert "±" in out
    code, _, err = nae(*words, "--seeds", 0)
    assert code == 2
    assert "--seeds must be at least 1; got 0" in err


def test_trials_are_fitted_and_measured_with_offset_and_weight(nae: Command, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    age, years = random.normal(size=400), random.uniform(0.1, 2, 400)
    claims = random.poisson(years * np.exp(0.5 * age))
    rows = pa.table({"age": age, "log years": np.log(years), "times": np.ones(400), "claims": claims.astype(float)})
    write_table(rows, str(tmp_path / "claims.parquet"))
    words = ("tune", tmp_path / "claims.parquet", "-t", "claims", "--loss", "poisson", "--trials", 1, *TINY)
    beside = ("--offset", "log years", "--weight", "times")
    code, _, err = nae(*words, *beside, "-f", tmp_path / "study", "-o", tmp_path / "m.nae")
    assert code == 0, err
    model = library.load(tmp_path / "m.nae")
    assert (model.feature_names, model.offset_names) == (("age",), ("log years",))
    code, _, err = nae(*words, "--ignore", "log years", "--ignore", "times", "-f", tmp_path / "study")
    assert code == 2  # the same study, measured otherwise
    assert "other" in err or "differ" in err
