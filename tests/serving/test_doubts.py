"""Intervals and sets over HTTP."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import nae
from nae.tables import save
from tests.laws.models import with_doubts
from tests.serving.conftest import make_rows, serving, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("doubts")
    for kind in ("number", "three"):
        save(with_doubts(train(kind), np.random.default_rng(0)), place / f"{kind}.nae")
    save(replace(train("number"), residuals=None), place / "plain.nae")
    return place


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[httpx.Client]:
    with serving(folder) as client:
        yield client


def ask(client: httpx.Client, path: str, n_rows: int = 5) -> Any:
    """Return the answer for some rows."""
    table = make_rows(n_rows, 1)
    rows = [{name: values[i] for name, values in table.items()} for i in range(n_rows)]
    return client.post(path, json={"rows": rows})


def test_intervals_come_with_predictions_if_asked_for(served: httpx.Client, folder: Path) -> None:
    found = ask(served, "/models/number/predict?interval=0.9").json()
    expected = nae.load(folder / "number.nae").predict_interval(make_rows(5, 1), 0.9)
    np.testing.assert_allclose(found["predictions"], expected.prediction)
    np.testing.assert_allclose([one["lower"] for one in found["intervals"]], expected.lower)
    np.testing.assert_allclose([one["upper"] for one in found["intervals"]], expected.upper)
    assert {name: found[name] for name in ("coverage", "basis", "guaranteed", "measured")} == {
        "coverage": 0.9,
        "basis": "out-of-fold",
        "guaranteed": False,
        "measured": 0.9,
    }


def test_sets_come_with_classes_if_asked_for(served: httpx.Client, folder: Path) -> None:
    found = ask(served, "/models/three/predict?set=0.8", 1).json()
    expected = nae.load(folder / "three.nae").predict_set(make_rows(1, 1), 0.8)
    assert found["sets"] == [list(own) for own in expected.sets]
    assert set(ask(served, "/models/three/predict").json()) == {"model", "version", "predictions", "probabilities"}


def test_what_cannot_be_told_is_refused(served: httpx.Client) -> None:
    for path, words in (
        ("/models/number/predict?interval=2", "coverage must be in (0, 1)"),
        ("/models/number/predict?set=0.9", "predict_set needs a classifier"),
        ("/models/three/predict?interval=much", "Parameter 'interval'"),
    ):
        answer = ask(served, path)
        assert answer.status_code == 422
        assert words in answer.json()["error"]


def test_the_document_names_the_parameter_and_the_answer(served: httpx.Client) -> None:
    paths = served.get("/openapi.json").json()["paths"]
    operation = paths["/models/number/predict"]["post"]
    assert [one["name"] for one in operation["parameters"]] == ["interval"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert set(ask(served, "/models/number/predict?interval=0.9").json()) == set(schema["anyOf"][1]["required"])
    assert [one["name"] for one in paths["/models/three/predict"]["post"]["parameters"]] == ["set"]
    assert paths["/models/plain/predict"]["post"]["parameters"] == []  # it has no residuals to answer with
