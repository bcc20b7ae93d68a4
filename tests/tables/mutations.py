"""Model files changed at random or on purpose, with and without mending their checksums.

A mutation takes a file, another one to borrow from, and random numbers. ``BROKEN`` ones leave checksums as they were:
the result must be refused or be the same model. ``FORGED`` ones mend them, so that a change gets past them.
"""

import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = [
    "BROKEN",
    "FORGED",
    "Mutation",
    "Parts",
    "break_bytes",
    "edit_arrays",
    "edit_header",
    "join",
    "mend",
    "split",
]

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 4, 10**9, 2**31, 2**63, 10**30, 10**400, -(10**400)),
    *(1.5, 0.5, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf")),
    *("", "softmax", "equal", "deep", "additive", "diagonal", "number", "boolean", "category", "log", "identity"),
    *("x" * 200, "x" * 70_000, "\ud800", "\0", "../../etc/passwd", "nae", "__proto__", "1", "True", "huber"),
    *([], {}, [[]], [None], ["a", "a"], ["a"], [1, 2], [0.5], {"a": {"b": []}}, ["x"] * 300, {"values": []}),
)
TOKENS = (b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"null", b"NaN", b"-Infinity", b"1e999", b"0", b"-", b".")
TOKENS += (b"\\ud800", b"\\u0000", b"\xff", b"\xed\xa0\x80", b"9" * 5000, b"[" * 5000, b'"format": 1,', b'"a":1,"a":2,')
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e15, -1e15, 1e30, 1e-40, 5e-324, 1e37, -1e37, 1e300)
Mutation = Callable[[bytes, bytes, np.random.Generator], bytes]
Parts = tuple[dict[str, Any], dict[str, Any], bytes]  # container header, model header, array bytes


def split(content: bytes) -> Parts:
    """Return the container's header, the model's header in it, and the bytes of the arrays."""
    length = int.from_bytes(content[:8], "little")
    container = json.loads(content[8 : 8 + length])
    return container, json.loads(container["__metadata__"]["nae"]), content[8 + length :]


def join(container: Any, body: bytes) -> bytes:
    """Return the bytes of a container with this header."""
    text = json.dumps(container).encode()
    return len(text).to_bytes(8, "little") + text + body


def mend(parts: Parts) -> bytes:
    """Return a file whose checksums are right, whatever else is wrong with it."""
    container, header, body = parts
    if isinstance(header, dict) and isinstance(header.get("arrays"), dict):
        for name, entry in header["arrays"].items():
            place = container.get(name)
            if isinstance(entry, dict) and isinstance(place, dict):
                start, end = _offsets(place)
                entry["sha256"] = hashlib.sha256(body[start:end]).hexdigest()
    return _with_text(container, json.dumps(header), body)


def break_bytes(content: bytes, _: bytes, random: np.random.Generator) -> bytes:
    """Flip, cut, insert, double or overwrite bytes; checksums stay as they were."""
    broken = bytearray(content)
    kind = random.integers(6)
    at = int(random.integers(len(broken)))
    if kind < 2:
        for _ in range(random.integers(1, 4)):
            broken[random.integers(len(broken))] ^= 1 << int(random.integers(8))
    elif kind == 2:
        del broken[at:]
    elif kind == 3:
        broken[at:at] = random.bytes(int(random.integers(1, 40)))
    elif kind == 4:
        del broken[at : at + int(random.integers(1, 40))]
    else:
        broken[at : at + 8] = random.bytes(8)
    return bytes(broken)


def break_header(content: bytes, _: bytes, random: np.random.Generator) -> bytes:
    """Put a piece of JSON, or a byte, somewhere into the header, and have its length fit."""
    length = int.from_bytes(content[:8], "little")
    at = 8 + int(random.integers(length))
    token = TOKENS[random.integers(len(TOKENS))] if random.integers(2) else random.bytes(1)
    skipped = len(token) if random.integers(2) else 0  # in the place of what was there, or before it
    header = content[8:at] + token + content[min(at + skipped, 8 + length) : 8 + length]
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def break_length(content: bytes, _: bytes, random: np.random.Generator) -> bytes:
    """Announce another length of the header."""
    length = int.from_bytes(content[:8], "little")
    near = length + int(random.integers(-9, 10))
    options = (near, 0, 1, 2, len(content), len(content) - 8, 2**24, 2**24 + 1, 2**63, int(random.integers(2**62)))
    return max(0, options[random.integers(len(options))]).to_bytes(8, "little") + content[8:]


def splice(content: bytes, other: bytes, random: np.random.Generator) -> bytes:
    """Return the beginning of one file and the end of another, or one after the other."""
    if random.integers(4) == 0:
        return content + other
    return content[: random.integers(len(content))] + other[random.integers(len(other)) :]


def edit_header(content: bytes, _: bytes, random: np.random.Generator) -> bytes:
    """Change, remove, add, rename or exchange a value somewhere in the model's header, and mend the checksums."""
    container, header, body = split(content)
    places = list(_places(header))
    if not places:
        return content
    parent, key = places[random.integers(len(places))]
    kind = random.integers(6)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        name = "" if random.integers(2) else f"{key}!"
        parent[name] = parent.pop(key) if random.integers(2) else parent[key]
    elif kind == 1:
        parent.append(parent[key])
    elif kind == 2 and type(parent[key]) is int:
        parent[key] += int((-2, -1, 1, 2)[random.integers(4)])
    elif kind == 3:
        source, at = places[random.integers(len(places))]
        parent[key] = copy.deepcopy(source[at])
    else:
        parent[key] = copy.deepcopy(VALUES[random.integers(len(VALUES))])
    return mend((container, header, body))


def edit_text(content: bytes, _: bytes, random: np.random.Generator) -> bytes:
    """Change the text of the model's header, which may be no JSON afterwards, and mend its checksum."""
    container, _, body = split(content)
    text = container["__metadata__"]["nae"]
    at = int(random.integers(len(text)))
    token = TOKENS[random.integers(len(TOKENS))].decode("latin-1")
    return _with_text(container, text[:at] + token + text[at + int(random.integers(3)) :], body)


def edit_arrays(content: bytes, _: bytes, random: np.random.Generator) -> bytes:
    """Change numbers, shapes or types of one array, here and in the model's header, and mend the checksums."""
    container, header, body = split(content)
    shared = [name for name in container if name in header.get("arrays", ()) and _is_place(container[name])]
    if not shared:
        return content
    name = shared[random.integers(len(shared))]
    place, entry = container[name], header["arrays"][name]
    if not isinstance(entry, dict):
        return content
    kind = random.integers(6)
    if kind == 0:
        random.shuffle(place["shape"])
        entry["shape"] = place["shape"]
    elif kind == 1:
        place["dtype"] = entry["dtype"] = "F64" if place["dtype"] == "F32" else "F32"
        if place["shape"]:
            grow = (lambda size: size // 2) if place["dtype"] == "F64" else (lambda size: size * 2)
            place["shape"][-1] = entry["shape"][-1] = grow(place["shape"][-1])
    else:
        body = _with_numbers(body, place, random)
    return mend((container, header, body))


def edit_container(content: bytes, _: bytes, random: np.random.Generator) -> bytes:
    """Change where arrays lie, what they are called, or what else the container holds."""
    container, header, body = split(content)
    names = [name for name in container if name != "__metadata__"]
    if len(names) < 2:
        return content
    name, other = (names[i] for i in random.integers(len(names), size=2))
    kind = random.integers(6)
    if kind == 0:
        container[name], container[other] = container[other], container[name]
    elif kind == 1:
        del container[name]
        if random.integers(2) and isinstance(header.get("arrays"), dict):
            header["arrays"].pop(name, None)
    elif kind == 2:
        container["" if random.integers(2) else f"{name}!"] = container[name]
    elif kind == 3 and _is_place(container[name]):
        key = ("dtype", "shape", "data_offsets")[random.integers(3)]
        container[name][key] = copy.deepcopy(VALUES[random.integers(len(VALUES))])
    elif kind == 4 and _is_place(container[name]):
        at = int(random.integers(2))
        container[name]["data_offsets"][at] = int(container[name]["data_offsets"][at]) + int(random.integers(-9, 10))
    else:
        container["__metadata__"]["more"] = copy.deepcopy(VALUES[random.integers(len(VALUES))])
    return mend((container, header, body))


def resize_array(content: bytes, other: bytes, random: np.random.Generator) -> bytes:
    """Give one array another shape and other numbers, or those of another file, with places that fit."""
    container, header, body = split(content)
    try:
        arrays = {name: _numbers_at(body, place) for name, place in container.items() if name != "__metadata__"}
        name = list(arrays)[random.integers(len(arrays))]
        lender, _, lent = split(other)
        if random.integers(2) and name in lender:
            arrays[name] = _numbers_at(lent, lender[name])
        else:
            arrays[name] = _resized(arrays[name], random)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):  # an earlier mutation left none
        return content
    start, parts = 0, []
    for key, array in arrays.items():
        kind = "F32" if array.dtype.itemsize == 4 else "F64"
        parts.append(array.tobytes())
        entry = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, start + array.nbytes]}
        container[key], start = entry, start + array.nbytes
        if isinstance(header.get("arrays"), dict):
            header["arrays"][key] = {"dtype": kind, "shape": list(array.shape)}
    return mend((container, header, b"".join(parts)))


BROKEN: tuple[Mutation, ...] = (break_bytes, break_bytes, break_header, break_length, splice)
FORGED: tuple[Mutation, ...] = (
    *(edit_header, edit_header, edit_header, edit_arrays, edit_arrays),
    *(resize_array, edit_text, edit_container),
)


def _with_text(container: dict[str, Any], text: str, body: bytes) -> bytes:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    metadata = container.get("__metadata__")
    more = metadata if isinstance(metadata, dict) else {}
    return join(container | {"__metadata__": more | {"nae": text, "nae_sha256": digest}}, body)


def _is_place(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("dtype") not in ("F32", "F64"):
        return False
    return all(isinstance(entry.get(key), list) for key in ("shape", "data_offsets")) and _offsets(entry) != (0, 0)


def _offsets(place: dict[str, Any]) -> tuple[int, int]:
    found = place.get("data_offsets")
    if isinstance(found, list) and len(found) == 2 and all(type(one) is int and 0 <= one < 2**31 for one in found):
        return found[0], found[1]
    return 0, 0


def _numbers_at(body: bytes, place: dict[str, Any]) -> np.ndarray:
    start, end = _offsets(place)
    return np.frombuffer(body[start:end], dtype="<f4" if place["dtype"] == "F32" else "<f8").reshape(place["shape"])


def _resized(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    shape = list(array.shape)
    kind = random.integers(4)
    if kind == 0 and shape:
        at = int(random.integers(len(shape)))
        shape[at] = max(0, shape[at] + int(random.integers(-2, 3)))
    elif kind == 1:
        shape.insert(int(random.integers(len(shape) + 1)), int(random.integers(0, 3)))
    elif kind == 2 and shape:
        shape.pop(int(random.integers(len(shape))))
    resized = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    if random.integers(2):
        resized = resized * resized.dtype.type(ODD[random.integers(len(ODD))])
    return resized.astype((np.float32, np.float64)[random.integers(2)]) if random.integers(4) == 0 else resized


def _with_numbers(body: bytes, place: dict[str, Any], random: np.random.Generator) -> bytes:
    """Return the bytes after a change of one number of an array, or of all of them."""
    start, end = _offsets(place)
    dtype = "<f4" if place["dtype"] == "F32" else "<f8"
    values = np.frombuffer(body[start : end - (end - start) % int(dtype[2])], dtype=dtype).copy()
    if len(values):
        odd = (*ODD, np.finfo(values.dtype).max, np.finfo(values.dtype).max / 4, random.standard_normal())
        at = slice(None) if random.integers(4) == 0 else random.integers(len(values))
        values[at] = odd[random.integers(len(odd))]
    return body[:start] + values.tobytes() + body[start + values.nbytes :]


def _places(value: Any) -> Any:
    """Yield every (container, key) of a JSON value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])
