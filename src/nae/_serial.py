"""Convert results to JSON and back, and to data frames."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from nae._optional import require
from nae._typing import AnyArray
from nae.errors import ConfigError, FormatError

__all__ = ["FORMAT", "Column", "Serial", "make_frame"]

Column: TypeAlias = AnyArray | Sequence[object]  # of a data frame

FORMAT = 1  # the version of the JSON form; raise it if an older reader would misread a change


class Serial:
    """A frozen dataclass that can be saved as JSON and read back without loss."""

    type_name: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return {"type": self.type_name, "format": FORMAT, **_encode_fields(self)}

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the explanation as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild an explanation from the result of :meth:`to_dict`."""
        if content.get("type") != cls.type_name or content.get("format") != FORMAT:
            raise FormatError(
                f"Expected type {cls.type_name!r} in format {FORMAT}; "
                f"got {content.get('type')!r} in format {content.get('format')!r}."
            )
        body = {key: value for key, value in content.items() if key not in ("type", "format")}
        made = _decode_dataclass(cls, body)
        if not isinstance(made, cls):
            raise TypeError(f"{cls.__name__} was rebuilt as {type(made).__name__}.")
        return made

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild an explanation from the result of :meth:`to_json`."""
        return cls.from_dict(json.loads(text))


def make_frame(columns: Mapping[str, Column], backend: Any) -> Any:
    """Return columns as a data frame of pandas or polars."""
    if backend not in ("pandas", "polars"):
        raise ConfigError(f"backend must be 'pandas' or 'polars'; got {backend!r}.")
    require(backend)
    import narwhals.stable.v2 as nw

    plain = {
        name: values if isinstance(values, np.ndarray) and values.dtype.kind in "fi" else list(values)
        for name, values in columns.items()
    }
    return nw.from_dict(plain, backend=backend).to_native()


def _encode_fields(value: Any) -> dict[str, Any]:
    return {item.name: _encode(getattr(value, item.name)) for item in fields(value)}


def _encode(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _encode_fields(value)
    if isinstance(value, np.ndarray):
        if value.size == 0:
            return {"shape": list(value.shape)}  # a list would lose the type
        return _encode_numbers(value) if value.dtype.kind == "f" else [_encode(item) for item in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return _encode_number(float(value))
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return str(value)


def _encode_numbers(values: AnyArray) -> Any:
    if np.isfinite(values).all():
        return values.tolist()
    return [_encode_numbers(part) if part.ndim else _encode_number(float(part)) for part in values]


def _encode_number(value: float) -> float | str | None:
    if np.isnan(value):
        return None
    return value if np.isfinite(value) else str(value)  # JSON has no infinity


def _decode_dataclass(cls: type, content: Mapping[str, Any]) -> Any:
    hints = get_type_hints(cls)
    expected = {item.name for item in fields(cls)}
    optional = {item.name for item in fields(cls) if item.default is not MISSING}  # added since the format began
    wrong = sorted(expected.symmetric_difference(content) - (optional - set(content)))
    if wrong:
        raise FormatError(
            f"{cls.__name__} must have the fields {sorted(expected)}; {wrong[0]!r} is too much or absent."
        )
    try:
        return cls(**{name: _decode(hints[name], content[name]) for name in expected & set(content)})
    except (TypeError, ValueError, IndexError, KeyError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{cls.__name__} cannot be rebuilt; {error!r}.") from error


def _decode(hint: Any, value: Any) -> Any:
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if value is None:
            return None
        return _decode(next(option for option in options if option is not NoneType), value)
    if origin is np.ndarray:
        return _decode_array(hint, value)
    if origin is tuple:
        return tuple(_decode(options[0], item) for item in value)
    if isinstance(hint, type) and is_dataclass(hint):
        return _decode_dataclass(hint, value)
    if hint is float:
        return float("nan") if value is None else float(value)
    return value


def _decode_array(hint: Any, value: Any) -> AnyArray:
    kind = str(get_args(get_args(hint)[1])[0])
    dtype: Any = np.int64 if "integer" in kind else np.float64
    if isinstance(value, Mapping):
        return np.empty(value["shape"], dtype=dtype)
    if "Any" in kind and "floating" not in kind and "integer" not in kind:  # a column of the user's table
        return _decode_column(value)
    return np.array(value, dtype=dtype)


def _decode_column(values: list[Any]) -> AnyArray:
    if all(isinstance(value, bool) for value in values):
        return np.array(values, dtype=bool)
    is_number = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in values]
    odd = [value for value, known in zip(values, is_number, strict=True) if not known]
    if all(value is None for value in odd) or (any(is_number) and set(odd) <= {None, "inf", "-inf"}):
        return np.array(values, dtype=np.float64)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
