"""Infer the encoding, the delimiter and the decimal point of a CSV file from its content."""

import codecs
from collections import Counter
from dataclasses import dataclass

from nae.errors import DataError

__all__ = ["Dialect", "decode", "encoding_of", "guess_delimiter"]

_SAMPLE = 1 << 16
_MARKS = {  # longer marks first, because one is the beginning of another
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}
_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Dialect:
    """The delimiter and the decimal point of a file."""

    delimiter: str
    decimal: str = "."


def encoding_of(content: bytes, source: str, *, is_whole: bool = True) -> str:
    """Return the encoding of a file: that of its byte-order mark, or else UTF-8 or Windows-1252.

    If not ``is_whole``, ``content`` is the beginning of a file and may end in the middle of a character.
    """
    marked = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
    if marked is not None:
        return marked
    if b"\0" in content[:_SAMPLE]:
        raise DataError(f"{source} must be a table; it is neither text nor a format known here.")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content, final=is_whole)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def decode(content: bytes, source: str) -> str:
    """Return the text of a file."""
    encoding = encoding_of(content, source)
    try:
        text = content.decode(encoding, errors="replace" if encoding == "cp1252" else "strict")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{source} must be {encoding.upper()} text, as its first bytes say; byte {error.start} is not "
            f"({error.reason})."
        ) from None
    if "\0" in text[:_SAMPLE]:
        raise DataError(f"{source} must be a table; it is neither text nor a format known here.")
    return text


def guess_delimiter(text: str) -> str:
    """Return the delimiter that splits the first records into equally many fields."""
    counts = _count_by_record(text[:_SAMPLE])
    best, best_rank = ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        first = counts[0][delimiter] if counts else 0
        alike = sum(count[delimiter] == first for count in counts)
        rank = (alike / len(counts), first) if first else (0.0, 0)
        if rank > best_rank:
            best, best_rank = delimiter, rank
    return best


def _count_by_record(text: str) -> list[Counter[str]]:
    """Return how often each delimiter occurs outside quotes in each record, without an incomplete last one."""
    records: list[Counter[str]] = [Counter()]
    is_quoted, is_empty = False, True
    for character in text:
        if character == '"':
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif character == "\n":
            if not is_empty:
                records.append(Counter())
            is_empty = True
            continue
        elif character in _DELIMITERS:
            records[-1][character] += 1
        is_empty = is_empty and character.isspace()
    if len(records) > 1 and (is_empty or len(text) == _SAMPLE):
        records.pop()
    return records
