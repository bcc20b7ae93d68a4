"""Every experiment of the paper, gone through with little to do, so that none rots."""

import json
from pathlib import Path

import pytest

from benchmarks.paper.command import reproduce
from benchmarks.paper.pages import Places
from benchmarks.paper.registry import EXPERIMENTS
from benchmarks.paper.store import RunStore

QUICK = ("generic", "parameters", "unimodal")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Return a store that the experiments share, as they do outside of tests."""
    return RunStore(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(experiment.name, marks=() if experiment.name in QUICK else pytest.mark.slow)
        for experiment in EXPERIMENTS
    ],
)
def test_an_experiment_runs_and_makes_its_page(
    name: str, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAE_DATA", raising=False)
    places = Places(tmp_path / "results", tmp_path / "page.md")
    reproduce([name], store, places, is_smoke=True)
    text = (places.folder / f"{name}.md").read_text()
    content = json.loads((places.folder / f"{name}.json").read_text())
    pictures = [line.partition("(./")[2].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert f"python -m benchmarks paper {name}" in text
    assert f'<a id="{name}">' in places.page.read_text()
    assert all((places.folder / picture).stat().st_size > 1000 for picture in pictures)
    assert len(pictures) >= (name in DRAWN)
    # Where the paper has numbers, a smoke run has some beside them.
    assert not content["lines"] or any(line["paper mode"] for line in content["lines"])


DRAWN = {
    "unimodal", "multimodal", "sim-lambda", "sparsity", "modality", "longitude", "lambda", "ga2m", "three-way", "nae-d",
    "nae-e", "cost", "theory", "all-features",
}  # fmt: skip
