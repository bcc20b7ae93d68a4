"""Save an estimator as a model file, with its parameters, classes and history as JSON values next to the tables."""

import math
import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nae._typing import AnyArray
from nae.errors import FormatError, NAEWarning, UserError
from nae.tables.archive import read_archive, save
from nae.training import History

if TYPE_CHECKING:
    from nae.estimators.base import NAEEstimator

__all__ = [
    "decode_classes",
    "decode_params",
    "encode_classes",
    "encode_params",
    "load_estimator",
    "save_estimator",
]

_CLASS_KINDS = "iufbUmM"

EstimatorT = TypeVar("EstimatorT", bound="NAEEstimator")


def save_estimator(estimator: "NAEEstimator", path: str | os.PathLike[str]) -> None:
    """Write the model of a fitted estimator, with everything that is needed to rebuild the estimator."""
    classes = getattr(estimator, "classes_", None)
    entry = {
        "class": type(estimator).__name__,
        "params": encode_params(estimator.get_params(deep=False)),
        "classes": None if classes is None else encode_classes(classes),
        "history": _encode(estimator.history_.to_dict()),
        "table_error": float(estimator.table_error_),
    }
    save(estimator.model_, path, extra={"estimator": entry})


def load_estimator(kind: type[EstimatorT], path: str | os.PathLike[str]) -> EstimatorT:
    """Read an estimator of the given class. A file with another class, or with only a model, is an error."""
    model, extra = read_archive(path)
    entry = extra.get("estimator")
    if not isinstance(entry, dict):
        raise FormatError(f"{path} must hold an estimator; it holds only a model. Use nae.load.")
    if entry.get("class") != kind.__name__:
        raise FormatError(f"{path} must hold a {kind.__name__}; it holds a {str(entry.get('class'))[:40]}.")
    if bool(model.classes) != (entry.get("classes") is not None):
        raise FormatError(f"{path} must hold the classes of its model.")
    estimator = kind()
    estimator.set_params(**decode_params(entry.get("params"), estimator.get_params(deep=False)))
    estimator.model_ = model
    estimator.history_ = _decode_history(entry.get("history"))
    estimator.n_iter_ = len(estimator.history_)
    error = entry.get("table_error")
    estimator.table_error_ = error if isinstance(error, float) else 0.0
    estimator.n_features_in_ = model.n_features
    if model.schema.has_names:
        estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
    if model.classes:
        estimator.classes_ = decode_classes(entry["classes"], model.classes)
    return estimator


def encode_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that JSON can hold. A warning names the others, which have their default after loading."""
    encoded, dropped = {}, []
    for name, value in params.items():
        try:
            encoded[name] = _encode(value)
        except TypeError:
            dropped.append(name)
    if dropped:
        warnings.warn(
            f"A model file holds no code: {', '.join(dropped)} will have the default after loading.",
            NAEWarning,
            stacklevel=4,  # points at the call of save
        )
    return encoded


def decode_params(encoded: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the original parameters. A parameter that the estimator does not have is an error."""
    if not isinstance(encoded, dict):
        raise FormatError("The parameters of the estimator must be values by name.")
    unknown = sorted(set(encoded) - set(known))
    if unknown:
        raise FormatError(f"The file has the parameter {unknown[0]!r}, which this version does not know.")
    return {name: _decode(value) for name, value in encoded.items()}


def encode_classes(classes: AnyArray) -> dict[str, Any]:
    """Return the classes with their type: integers keep their width, and text stays text."""
    if classes.dtype == object:
        if not all(type(label) in (str, int, bool, float) for label in classes):
            kinds = sorted({type(label).__name__ for label in classes})
            raise UserError(f"Classes in a file must be text, numbers or booleans; got {kinds}. Convert y before fit.")
        return {"dtype": "object", "values": classes.tolist()}
    if classes.dtype.kind not in _CLASS_KINDS:
        raise UserError(f"Classes in a file must be text, numbers or booleans; got {classes.dtype}.")
    written: dict[str, Any] = {"M": str, "m": np.int64}  # durations are stored as numbers of their unit
    values = classes.astype(written.get(classes.dtype.kind, classes.dtype))
    name = (
        "U" if classes.dtype.kind == "U" else classes.dtype.str.lstrip("<>=|")
    )  # the width of text follows from its values
    return {"dtype": name, "values": values.tolist()}


def decode_classes(encoded: Any, names: tuple[str, ...]) -> AnyArray:
    """Return the original classes. They must have the names that the model knows."""
    try:
        dtype = np.dtype(str(encoded["dtype"]))
        if dtype.kind not in f"{_CLASS_KINDS}O":
            raise FormatError(f"Classes cannot be of type {dtype}.")
        classes = np.array(encoded["values"], dtype=str if dtype.kind == "U" else dtype)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"The classes of the estimator cannot be read ({error!r}).") from error
    texts = tuple(str(label) for label in classes.tolist()) if classes.ndim == 1 else ()
    if texts != names and not (len(names) == 2 and texts == names[::-1]):  # the score may speak for the first of two
        raise FormatError(f"The classes of the estimator must be those of its model, {list(names)[:8]}.")
    return classes


def _decode_history(encoded: Any) -> History:
    """Return the history of a training."""
    try:
        return History.from_dict(_decode(encoded))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"The history of the training cannot be read ({error!r}).") from error


def _encode(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) is tuple:
        return {"tuple": [_encode(one) for one in value]}
    if type(value) is list:
        return [_encode(one) for one in value]
    if type(value) is dict:
        return {"dict": [[_encode(key), _encode(one)] for key, one in value.items()]}
    if type(value) is np.ndarray and value.dtype.kind in "biuf" and value.ndim == 1:
        return {"array": [_encode(one) for one in value.tolist()], "dtype": value.dtype.name}
    raise TypeError(type(value).__name__)


def _decode(value: Any) -> Any:
    if not isinstance(value, dict | list):
        return value
    try:
        if isinstance(value, list):
            return [_decode(one) for one in value]
        if "float" in value:
            return float(value["float"])
        if "tuple" in value:
            return tuple(_decode(one) for one in value["tuple"])
        if "dict" in value:
            return {_decode(key): _decode(one) for key, one in value["dict"]}
        return np.array([_decode(one) for one in value["array"]], dtype=np.dtype(str(value["dtype"])))
    except FormatError:  # the error of a nested value
        raise
    except RecursionError:
        raise FormatError("A parameter of the estimator is nested too deep.") from None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"A parameter of the estimator cannot be read ({error!r}).") from error
