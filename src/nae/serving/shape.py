"""Check the shape of a large body before it is parsed: the number of rows and fields, and no nested values."""

import re

from nae.serving.errors import RequestError

__all__ = ["check_shape"]

_MOST_UNKNOWN = 20  # a row may have this many fields more than the model has features
_FEW_PARTS = 5_000  # a body with at most this many fields is cheap to parse, so it is not checked
_MOST_SHOWN = 60  # characters of a sent name that an error shows
# The pattern finds a text, with the colon that makes it the name of a field; the begin or end of an object or a list;
# and an item of a list that is neither an object nor a text. It takes one pass over bytes without escapes.
_PARTS = re.compile(rb'"([^"]*)(?:"[ \t\r\n]*(:)?)?|[{}\[\]]|,[ \t\r\n]*(?=[^ "{\t\r\n])')
_ROWS, _ROW = 2, 3  # depth of the list of rows, and of the fields of a row


def check_shape(body: bytes, *, max_rows: int, n_features: int) -> None:
    """Raise an error at the first row of a large body that has too many fields, or a list in place of a value.

    Too many rows are an error as well. The parser checks later whether the body is JSON.
    """
    if body.count(b",") <= _FEW_PARTS and body.count(b":") <= _FEW_PARTS:
        return
    at = _Place(max_rows, n_features)
    for part in _PARTS.finditer(_without_escapes(body)):
        kind = part.group()[:1]
        if kind in b"}]":
            at.depth -= 1
        elif kind in b"{[":
            at.enter(kind)
        elif at.depth == _ROWS:
            raise _wrong_row(at.row + 1)
        elif part[2] is not None:
            at.count(part[1])


class _Place:
    """The position in a body during the check."""

    def __init__(self, max_rows: int, n_features: int) -> None:
        self.depth, self.row = 0, -1
        self._name, self._n_fields = b"", 0
        self._max_rows, self._n_features = max_rows, n_features

    def enter(self, kind: bytes) -> None:
        """Enter an object or a list."""
        if self.depth >= _ROW:
            raise _wrong_value(self.row, self._name)
        if kind != b"{[{"[self.depth : self.depth + 1]:
            raise _wrong_row(self.row + 1) if self.depth == _ROWS else _wrong_body()
        self.depth += 1
        if self.depth == _ROW:
            self.row, self._n_fields = self.row + 1, 0
            if self.row >= self._max_rows:
                raise RequestError(422, f"A request must have at most {self._max_rows} rows; this one has more.")

    def count(self, name: bytes) -> None:
        """Count a field."""
        self._name, self._n_fields = name, self._n_fields + 1
        most = self._n_features + _MOST_UNKNOWN
        if self._n_fields > most:
            raise _wrong_body() if self.depth < _ROW else _too_many(self.row, self._n_features, most)


def _without_escapes(body: bytes) -> bytes:
    return body.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in body else body


def _wrong_body() -> RequestError:
    return RequestError(422, "The body must be {'rows': [one object per row]}, with no other field.")


def _wrong_row(row: int) -> RequestError:
    return RequestError(422, f"Row {row} must be an object with one field per feature.", row=row)


def _wrong_value(row: int, name: bytes) -> RequestError:
    field = name.decode("utf-8", "replace")[:_MOST_SHOWN]
    text = "the value must be a number, a text, true, false or null; it is a list or an object"
    return RequestError(422, f"Row {row}, feature {field!r}: {text}.", field=field, row=row)


def _too_many(row: int, n_features: int, most: int) -> RequestError:
    return RequestError(
        422, f"Row {row} must have one field per feature, of which there are {n_features}; it has over {most}.", row=row
    )
