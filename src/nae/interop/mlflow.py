"""Models in MLflow: a ``pyfunc`` flavour that consists of the model file. This module reads it. Nothing is pickled."""

import os
import tempfile
from pathlib import Path
from typing import Any

from nae import __version__
from nae._optional import require
from nae._typing import AnyArray
from nae.encoding.schema import Category
from nae.errors import UserError
from nae.tables import TableModel, load, save

__all__ = ["PyfuncModel", "save_model"]

WHAT = ("prediction", "probabilities", "scores", "contributions", "lower", "upper")


class PyfuncModel:
    """The object that MLflow calls. ``params={"what": ...}`` asks for another result than the prediction."""

    def __init__(self, model: TableModel) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> AnyArray:
        """Return predictions, or with ``params["what"]`` probabilities, scores, contributions, lower or upper."""
        what = (params or {}).get("what", "prediction")
        if what not in WHAT:
            raise UserError(f"what must be one of {list(WHAT)}; got {what!r}.")
        if what == "prediction":
            return self.model.predict(data)
        if what == "probabilities":
            return self.model.predict_proba(data)
        if what == "scores":
            return self.model.decision_function(data)
        found = self.model.contributions(data)
        return {"contributions": found.values, "lower": found.lower, "upper": found.upper}[what]


def save_model(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a model, or the model of a fitted estimator, as an MLflow model.

    Parameters
    ----------
    model
        A TableModel or a fitted estimator.
    path
        A folder that does not exist yet.
    options
        Passed on to ``mlflow.pyfunc.save_model``, such as ``metadata``.
    """
    pyfunc = require("mlflow.pyfunc", extra="mlflow")
    tables = getattr(model, "model_", model)
    options = {"pip_requirements": [f"neural-additive-experts=={__version__}"]} | options
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.nae"
        save(tables, file)
        pyfunc.save_model(
            path=os.fspath(path), loader_module=__name__, data_path=str(file), signature=_signature(tables), **options
        )


def _signature(model: TableModel) -> Any:
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema

    columns: list[Any] = [  # the annotation of MLflow does not allow a list of ColSpec
        ColSpec(DataType.string if isinstance(feature, Category) else DataType.double, feature.name, required=False)
        for feature in model.schema.features
    ]
    return ModelSignature(
        inputs=Schema(columns), params=ParamSchema([ParamSpec("what", DataType.string, default="prediction")])
    )


def _load_pyfunc(path: str) -> PyfuncModel:
    """Return the model in a file. MLflow looks for a function of this name."""
    return PyfuncModel(load(path))
