"""What of an estimator goes into a model file beside its tables: parameters, classes, history. Plain JSON values."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.errors import FormatError, NAEWarning, UserError
from nae.training import History
from nae.training.history import Epoch

__all__ = ["decode_classes", "decode_history", "decode_params", "encode_classes", "encode_history", "encode_params"]

_CLASS_KINDS = "iufbUM"


def encode_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that JSON can hold; the others are named in a warning and get their default on loading."""
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
            stacklevel=4,
        )
    return encoded


def decode_params(encoded: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as they were; one that the estimator does not have is an error."""
    if not isinstance(encoded, dict):
        raise FormatError("The parameters of the estimator must be values by name.")
    unknown = sorted(set(encoded) - set(known))
    if unknown:
        raise FormatError(f"The file has the parameter {unknown[0]!r}, which this version does not know.")
    return {name: _decode(value) for name, value in encoded.items()}


def encode_classes(classes: AnyArray) -> dict[str, Any]:
    """Return classes with their type: integers stay integers of their width, text stays text."""
    if classes.dtype == object:
        if not all(type(label) in (str, int, bool, float) for label in classes):
            kinds = sorted({type(label).__name__ for label in classes})
            raise UserError(f"Classes in a file must be text, numbers or booleans; got {kinds}. Convert y before fit.")
        return {"dtype": "object", "values": classes.tolist()}
    if classes.dtype.kind not in _CLASS_KINDS:
        raise UserError(f"Classes in a file must be text, numbers or booleans; got {classes.dtype}.")
    values = classes.astype(str) if classes.dtype.kind == "M" else classes
    name = "U" if classes.dtype.kind == "U" else classes.dtype.str.lstrip("<>=|")  # text is as wide as it has to be
    return {"dtype": name, "values": values.tolist()}


def decode_classes(encoded: Any, names: tuple[str, ...]) -> AnyArray:
    """Return the classes as they were; they must be those the model names."""
    try:
        dtype = np.dtype(str(encoded["dtype"]))
        if dtype.kind not in f"{_CLASS_KINDS}O":
            raise FormatError(f"Classes cannot be of type {dtype}.")
        classes = np.array(encoded["values"], dtype=str if dtype.kind == "U" else dtype)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"The classes of the estimator cannot be read ({error!r}).") from error
    if classes.ndim != 1 or tuple(str(label) for label in classes.tolist()) != names:
        raise FormatError(f"The classes of the estimator must be those of its model, {list(names)[:8]}.")
    return classes


def encode_history(history: History) -> Any:
    """Return the history of a training as JSON values."""
    return _encode(history.to_dict())


def decode_history(encoded: Any) -> History:
    """Return the history of a training."""
    try:
        found = _decode(encoded)
        return History(**found | {"epochs": [Epoch(**row) for row in found["epochs"]]})
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
    if isinstance(value, list):
        return [_decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    try:
        if "float" in value:
            return float(value["float"])
        if "tuple" in value:
            return tuple(_decode(one) for one in value["tuple"])
        if "dict" in value:
            return {_decode(key): _decode(one) for key, one in value["dict"]}
        return np.array([_decode(one) for one in value["array"]], dtype=np.dtype(str(value["dtype"])))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"A parameter of the estimator cannot be read ({error!r}).") from error
