"""How a CSV file is written: its encoding, its delimiter and its decimal point, guessed from its content."""

from collections import Counter
from dataclasses import dataclass

from nae.errors import DataError

__all__ = ["Dialect", "decode", "guess_delimiter"]

_SAMPLE = 1 << 16
_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Dialect:
    """Delimiter and decimal point of a file."""

    delimiter: str
    decimal: str = "."


def decode(content: bytes, source: str) -> str:
    """Return the text of a file: UTF-8 or UTF-16 with or without a byte-order mark, else the Western code page."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{source} must be UTF-16 text, as its first bytes say; byte {error.start} is none ({error.reason})."
            ) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
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
    """Return how often each delimiter stands outside quotes, record by record; an unfinished last one is left out."""
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
