"""The MLflow wrapper, with the real package."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae.errors import UserError
from nae.interop.mlflow import PyfuncModel, save_model
from nae.tables import TableModel, load
from tests.golden.make_format_1 import FOLDER, ROWS

pandas = pytest.importorskip("pandas", reason="MLflow hands tables over as pandas frames")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # MLflow's own imports warn
    pyfunc = pytest.importorskip("mlflow.pyfunc", reason="mlflow-skinny is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def model() -> TableModel:
    return load(FOLDER / "format_1.nae")


@pytest.fixture(scope="module")
def frame() -> Any:
    table = pandas.DataFrame(ROWS)
    return table.assign(is_new=table["is_new"].astype("float64"))


@pytest.fixture(scope="module")
def loaded(model: TableModel, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("mlflow") / "model"
    save_model(model, folder)
    assert not [path for path in folder.rglob("*") if path.suffix in (".pkl", ".pickle")]
    return pyfunc.load_model(str(folder))


def test_mlflow_predicts_as_the_model_does(loaded: Any, model: TableModel, frame: Any) -> None:
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(ROWS))


@pytest.mark.parametrize("what", ["contributions", "lower", "upper"])
def test_mlflow_explains(loaded: Any, model: TableModel, frame: Any, what: str) -> None:
    found = model.contributions(ROWS)
    expected = {"contributions": found.values, "lower": found.lower, "upper": found.upper}[what]
    np.testing.assert_allclose(loaded.predict(frame, params={"what": what}), expected, atol=1e-6)


def test_probabilities_and_scores_come_on_request(loaded: Any, model: TableModel, frame: Any) -> None:
    found = loaded.predict(frame, params={"what": "probabilities"})
    np.testing.assert_allclose(found, model.predict_proba(ROWS), atol=1e-6)
    found = loaded.predict(frame, params={"what": "scores"})
    np.testing.assert_allclose(found, model.decision_function(ROWS), atol=1e-6)


def test_an_unknown_request_is_an_error(model: TableModel) -> None:
    with pytest.raises(UserError, match="what must be one of"):
        PyfuncModel(model).predict(ROWS, params={"what": "secrets"})


def test_the_folder_holds_the_model_file(model: TableModel, tmp_path: Path) -> None:
    save_model(model, tmp_path / "m", metadata={"team": "forest"})
    assert load(tmp_path / "m" / "data" / "model.nae").feature_names == model.feature_names
