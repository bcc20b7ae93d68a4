"""Read the rows of a request from JSON into columns. Every error names the field."""

import json
import math
from typing import Any

import numpy as np
from pydantic_core import SchemaValidator, ValidationError, core_schema

from nae._typing import AnyArray
from nae.encoding.columns import Columns
from nae.encoding.schema import Category, Feature, Schema
from nae.errors import did_you_mean
from nae.serving.errors import RequestError
from nae.serving.shape import check_shape

__all__ = ["RowReader", "accepts_numbers"]

_MOST_DIGITS = 400  # largest number of digits of an integer that a float can hold
_MOST_SHOWN = 60  # characters of a sent name that an error shows


class RowReader:
    """Reads the bodies for one model: one typed field per feature; a field that is absent or null is missing."""

    def __init__(self, schema: Schema, *, max_rows: int) -> None:
        self._schema = schema
        self._max_rows = max_rows
        fields = {
            feature.name: core_schema.typed_dict_field(
                core_schema.nullable_schema(_value_schema(feature)), required=False
            )
            for feature in schema.features
        }
        row = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        rows = core_schema.list_schema(row, min_length=1, max_length=max_rows, strict=True, fail_fast=True)
        body = core_schema.typed_dict_schema({"rows": core_schema.typed_dict_field(rows)}, extra_behavior="forbid")
        self._validator = SchemaValidator(body)

    def read(self, body: bytes) -> list[dict[str, Any]]:
        """Return the rows of a body. The error is about the first problem in it."""
        check_shape(body, max_rows=self._max_rows, n_features=len(self._schema.features))
        try:
            rows: list[dict[str, Any]] = self._validator.validate_json(body)["rows"]
        except ValidationError as error:
            raise self._complaint(self._as_wrong_field(error, body)) from None
        return rows

    def columns(self, rows: list[dict[str, Any]]) -> Columns:
        """Return the rows as columns in the model's order."""
        arrays = tuple(_column(feature, [row.get(feature.name) for row in rows]) for feature in self._schema.features)
        return Columns(arrays, self._schema.names)

    def _as_wrong_field(self, error: ValidationError, body: bytes) -> ValidationError:
        """Return an error that names the field, if a number had so many digits that the parser refused the body."""
        if "number out of range" not in str(error.errors(include_input=False)[0]["msg"]):
            return error
        try:
            self._validator.validate_python(json.loads(body, parse_int=_whole_number))
        except ValidationError as found:
            return found
        except (ValueError, RecursionError):
            return error
        return error

    def _complaint(self, error: ValidationError) -> RequestError:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        kind, place, text = first["type"], first["loc"], str(first["msg"])
        if kind == "json_invalid":
            return RequestError(400, f"The body must be JSON; {text}.")
        row = place[1] if len(place) > 1 and isinstance(place[1], int) else None
        if len(place) < 3:
            return RequestError(422, self._complaint_about_shape(kind, place, text), row=row)
        field = str(place[2])
        if kind == "extra_forbidden":
            hint = did_you_mean(field[:_MOST_SHOWN], self._schema.names)
            text = f"the model has no feature {field[:_MOST_SHOWN]!r}.{hint}"
            return RequestError(422, f"Row {row}: {text}", field=field[:_MOST_SHOWN], row=row)
        return RequestError(422, f"Row {row}, feature {field!r}: {text}.", field=field, row=row)

    def _complaint_about_shape(self, kind: str, place: tuple[int | str, ...], text: str) -> str:
        if kind == "too_long":
            return f"A request must have at most {self._max_rows} rows; this one has more."
        if kind == "extra_forbidden":
            return f"The body must have the field 'rows' alone; it has {str(place[-1])[:_MOST_SHOWN]!r}."
        if len(place) == 2:
            return f"Row {place[1]} must be an object with one field per feature."
        return f"The body must be {{'rows': [one object per row]}}; {text}."


def accepts_numbers(feature: Category) -> bool:
    """Return whether a category may be sent as a number, because all its levels are written numbers."""
    return bool(feature.levels) and all(_is_number(level) for level in feature.levels)


def _value_schema(feature: Feature) -> core_schema.CoreSchema:
    text = core_schema.str_schema(strict=True)
    number = core_schema.float_schema(strict=True, allow_inf_nan=False)
    if isinstance(feature, Category):
        if set(feature.levels) <= {"True", "False"}:
            return _either("text, true or false", text, core_schema.bool_schema(strict=True))
        whole = core_schema.int_schema(strict=True)  # an identifier may have more digits than a float
        return _either("text or a number", text, whole, number) if accepts_numbers(feature) else text
    return core_schema.bool_schema(strict=True) if feature.is_boolean else number


def _either(words: str, *choices: core_schema.CoreSchema) -> core_schema.CoreSchema:
    return core_schema.union_schema(
        list(choices), custom_error_type="wrong_type", custom_error_message=f"Input should be {words}"
    )


def _column(feature: Feature, values: list[Any]) -> AnyArray:
    if not isinstance(feature, Category):
        return np.array(values, dtype=np.float64)  # None becomes NaN
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _whole_number(digits: str) -> float:
    is_finite = len(digits) < _MOST_DIGITS and math.isfinite(float(digits))
    return int(digits) if is_finite else math.inf


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
