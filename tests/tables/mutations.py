"""Model files changed at random or on purpose, with and without mending their checksums."""

import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Parts", "break_bytes", "edit_arrays", "edit_header", "join", "mend", "split"]

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    2,
    3,
    10**9,
    10**30,
    1.5,
    -0.0,
    1e308,
    "",
    "softmax",
    "deep",
    "additive",
    "number",
    "x" * 200,
    "\ud800",
    "../../etc/passwd",
    [],
    {},
    [[]],
    ["a", "a"],
    {"a": {"b": []}},
)
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
    if isinstance(header.get("arrays"), dict):
        for name, entry in header["arrays"].items():
            place = container.get(name)
            if isinstance(entry, dict) and isinstance(place, dict):
                start, end = place["data_offsets"]
                entry["sha256"] = hashlib.sha256(body[start:end]).hexdigest()
    text = json.dumps(header)
    metadata = {"nae": text, "nae_sha256": hashlib.sha256(text.encode()).hexdigest()}
    return join(container | {"__metadata__": metadata}, body)


def break_bytes(content: bytes, random: np.random.Generator) -> bytes:
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


def edit_header(content: bytes, random: np.random.Generator) -> bytes:
    """Change, remove or add one value somewhere in the model's header, and mend the checksums."""
    container, header, body = copy.deepcopy(split(content))
    places = list(_places(header))
    parent, key = places[random.integers(len(places))]
    kind = random.integers(4)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[f"{key}!"] = parent[key]
    elif kind == 1:
        parent.append(parent[key])
    elif kind == 2 and type(parent[key]) is int:
        parent[key] += int(random.choice([-2, -1, 1, 2]))
    else:
        parent[key] = copy.deepcopy(VALUES[random.integers(len(VALUES))])
    return mend((container, header, body))


def edit_arrays(content: bytes, random: np.random.Generator) -> bytes:
    """Change numbers, shapes or types of one array, here and in the model's header, and mend the checksums."""
    container, header, body = copy.deepcopy(split(content))
    name = sorted(header["arrays"])[random.integers(len(header["arrays"]))]
    place, entry = container[name], header["arrays"][name]
    kind = random.integers(4)
    if kind == 0:
        shape = list(place["shape"])
        random.shuffle(shape)
        place["shape"] = entry["shape"] = [int(size) for size in shape]
    elif kind == 1:
        place["dtype"] = entry["dtype"] = "F64" if place["dtype"] == "F32" else "F32"
        if place["shape"]:
            grow = (lambda size: size // 2) if place["dtype"] == "F64" else (lambda size: size * 2)
            place["shape"][-1] = entry["shape"][-1] = grow(place["shape"][-1])
    else:
        body = _with_numbers(body, place, random)
    return mend((container, header, body))


def _with_numbers(body: bytes, place: dict[str, Any], random: np.random.Generator) -> bytes:
    start, end = place["data_offsets"]
    values = np.frombuffer(body[start:end], dtype="<f4" if place["dtype"] == "F32" else "<f8").copy()
    if len(values):
        odd = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e30, 1e-40, np.finfo(values.dtype).max, random.standard_normal()]
        values[random.integers(len(values))] = odd[random.integers(len(odd))]
    return body[:start] + values.tobytes() + body[end:]


def _places(value: Any) -> Any:
    """Yield every (container, key) of a JSON value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


Mutation = Callable[[bytes, np.random.Generator], bytes]
