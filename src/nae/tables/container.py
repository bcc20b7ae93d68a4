"""The container of a model file: safetensors, where every size in the header is checked against the size of the file.

The first eight bytes hold the length of the header. The header (JSON) holds the place of each array. The arrays follow
one after another. No memory is allocated on the word of the header: an array is made of bytes that were read.
"""

import io
import json
import math
import os
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from nae._typing import AnyArray
from nae.errors import FormatError

__all__ = ["MAX_HEADER", "Container", "parse_container", "parse_json", "read_container", "write_container"]

MAX_HEADER = 16 * 2**20  # bytes; the header holds names and levels, the arrays hold the numbers
_PREFIX = 8
_MAX_ARRAYS = 64
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}


@dataclass(frozen=True, eq=False)
class Container:
    """The content of a container: texts by name, and read-only arrays by name."""

    metadata: dict[str, str]
    arrays: dict[str, AnyArray]


def write_container(metadata: dict[str, str], arrays: dict[str, AnyArray]) -> bytes:
    """Return the bytes of a container. The same content gives the same bytes."""
    from safetensors.numpy import save

    content = bytes(save(arrays))
    at = _PREFIX + int.from_bytes(content[:_PREFIX], "little")
    # safetensors writes texts in an order that differs between processes, so they are added here.
    header = json.dumps({"__metadata__": metadata, **json.loads(content[_PREFIX:at])}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _PREFIX)  # arrays begin at a multiple of eight bytes, as in safetensors
    return len(header).to_bytes(_PREFIX, "little") + header + content[at:]


def read_container(path: Path) -> Container:
    """Read a container. The sizes in the header are checked before the arrays are read."""
    try:
        _check_plain(path.stat().st_mode)
        with path.open("rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError:
        raise FormatError(f"No file is at {path}.") from None
    except FormatError as error:
        raise FormatError(f"{path} must be a whole model file; {error}") from error
    except (OSError, MemoryError, ValueError) as error:  # ValueError: a path with a null byte
        raise FormatError(f"{path} cannot be read; {error}.") from error


def parse_container(content: bytes) -> Container:
    """Return the content of a container, given its bytes."""
    return _read(io.BytesIO(content), len(content))


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Duplicate keys, NaN and infinity are errors."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise FormatError("its header is nested too deeply.") from None
    except FormatError:
        raise
    except ValueError as error:  # also raised for bytes that are not UTF-8, and for numbers with thousands of digits
        raise FormatError(f"its header is not JSON ({error}).") from None


def _read(file: IO[bytes], size: int) -> Container:
    length = _header_length(file.read(_PREFIX), size)
    entries = _parse_header(file.read(length))
    _check_extent(entries, size - _PREFIX - length)
    return Container(_metadata(entries), _views(entries, file.read()))


def _check_plain(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise FormatError("it is a folder.")
    if not stat.S_ISREG(mode):  # reading a pipe would wait, reading a device would never end
        raise FormatError("it is not a plain file.")


def _header_length(prefix: bytes, size: int) -> int:
    if len(prefix) < _PREFIX:
        raise FormatError(f"it has {size} bytes and no header.")
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER:
        raise FormatError(f"its header must have at most {MAX_HEADER} bytes; the file announces {length}.")
    if length < 2 or length > size - _PREFIX:
        raise FormatError(
            f"its header must fit the file; {length} bytes are announced, {max(size - _PREFIX, 0)} are there."
        )
    return length


def _parse_header(content: bytes) -> dict[str, Any]:
    entries = parse_json(content)
    if not isinstance(entries, dict):
        raise FormatError("its header is not an object.")
    if len(entries) > _MAX_ARRAYS:
        raise FormatError(f"it must hold at most {_MAX_ARRAYS} arrays; its header announces {len(entries)}.")
    return entries


def _check_extent(entries: dict[str, Any], n_bytes: int) -> None:
    """Check that the arrays follow one another without gaps and fill the file exactly."""
    spans = []
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise FormatError(f"the entry {name!r} of its header does not describe an array.")
        if not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
            raise FormatError(f"{name!r} must hold F32 or F64; got {str(entry['dtype'])[:40]}.")
        shape = _whole_numbers(entry["shape"], f"the shape of {name!r}")
        start, end = _whole_numbers(entry["data_offsets"], f"the place of {name!r}", n=2)
        if len(shape) > 4 or math.prod(shape) * _DTYPES[entry["dtype"]].itemsize != end - start:
            raise FormatError(f"{name!r} of shape {shape} does not fit its {end - start} bytes.")
        spans.append((start, end, name))
    at = 0
    for start, end, name in sorted(spans):
        if start != at:
            raise FormatError(f"{name!r} must begin at byte {at} after the header; got {start}.")
        at = end
    if at != n_bytes:
        raise FormatError(f"its header announces {at} bytes of arrays; the file has {n_bytes}.")


def _whole_numbers(value: Any, what: str, *, n: int | None = None) -> list[int]:
    is_right = isinstance(value, list) and len(value) <= 8 and all(type(one) is int and one >= 0 for one in value)
    if not is_right or (n is not None and len(value) != n):
        raise FormatError(f"{what} must be a list of whole numbers.")
    return list(value)


def _metadata(entries: dict[str, Any]) -> dict[str, str]:
    metadata = entries.get("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError("its metadata must be texts by name.")
    return metadata


def _views(entries: dict[str, Any], body: bytes) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {}
    for name, entry in entries.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            own = body[start:end]  # a copy, so that it is aligned
            arrays[name] = np.frombuffer(own, dtype=_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatError(f"its header has the key {twice[:80]!r} twice.")
    return found


def _refuse(name: str) -> float:
    raise FormatError(f"its header holds {name}, which is not a JSON number.")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise FormatError(f"its header holds the number {text[:40]}, which is larger than the largest float.")
    return value
