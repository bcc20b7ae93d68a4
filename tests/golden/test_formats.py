"""Files of every format that was ever written keep loading, and predict what they did."""

import json
from pathlib import Path

import numpy as np
import pytest

import nae
from nae.tables.archive import FORMAT, read_archive
from nae.tables.gates import GATES
from nae.tables.routing import ROUTINGS
from tests.golden.make_kinds import answers

FOLDER = Path(__file__).parent
FORMATS = range(1, FORMAT + 1)
KINDS = sorted(FOLDER.glob("format_*_*.nae"))


@pytest.mark.parametrize("number", FORMATS)
def test_a_file_of_an_older_format_predicts_what_it_did(number: int) -> None:
    model = nae.load(FOLDER / f"format_{number}.nae")
    answers = json.loads((FOLDER / f"format_{number}.json").read_text())
    found = model.contributions(answers["rows"])
    np.testing.assert_allclose(model.predict_proba(answers["rows"]), answers["probabilities"], atol=1e-6)
    np.testing.assert_allclose(found.values, answers["contributions"], atol=1e-6)
    np.testing.assert_allclose(found.lower, answers["lower"], atol=1e-6)
    np.testing.assert_allclose(found.upper, answers["upper"], atol=1e-6)


@pytest.mark.parametrize("path", KINDS, ids=lambda path: path.stem)
def test_a_file_of_every_kind_predicts_what_it_did(path: Path) -> None:
    model, extra = read_archive(path)
    known = json.loads(path.with_suffix(".json").read_text())
    found = answers(model, known["rows"])
    for name in ("contributions", "lower", "upper", "predictions"):
        np.testing.assert_allclose(found[name], known[name], atol=1e-6)
    assert extra == {"note": "golden"}


def test_every_format_has_files_of_every_gate_and_routing() -> None:
    kept: dict[int, list[nae.TableModel]] = {}
    for path in FOLDER.glob("format_*.nae"):
        content = path.read_bytes()
        container = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        number = json.loads(container["__metadata__"]["nae"])["format"]
        assert path.stem.split("_")[1] == str(number)
        kept.setdefault(number, []).append(nae.load(path))
    assert sorted(kept) == list(FORMATS), "a format was raised: write its files by tests.golden.make_kinds"
    for models in kept.values():
        assert {model.gate.kind for model in models} == set(GATES)
        assert {model.routing.name for model in models} == set(ROUTINGS)


@pytest.mark.parametrize("number", FORMATS)
def test_a_file_of_an_older_format_keeps_everything_beside_the_tables(number: int) -> None:
    model, extra = read_archive(FOLDER / f"format_{number}.nae")
    assert extra == {"note": "golden"}
    kept = {name: value for name, value in model.training.to_dict().items() if name != "intervals"}
    assert kept == {"n_rows": 6, "note": "made by hand"}
    assert (model.residuals is not None) == (model.training.intervals is not None) == (number >= 3)
    assert model.classes == ("low", "middle", "high")
    assert model.explain_global().feature_names == ("size", "is_new", "kind")


def test_safetensors_itself_reads_the_container() -> None:
    from safetensors.numpy import load_file

    arrays = load_file(FOLDER / f"format_{FORMAT}.nae")
    np.testing.assert_array_equal(arrays["experts"], nae.load(FOLDER / f"format_{FORMAT}.nae").experts)
