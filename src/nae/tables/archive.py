"""Model files: one safetensors file whose metadata holds a JSON header. The format is specified in docs/format.md."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.encoding.schema import Schema
from nae.errors import FormatError
from nae.links import LINKS
from nae.tables.gates import GATES, GateTables
from nae.tables.model import TableModel
from nae.tables.routing import ROUTINGS
from nae.tables.statistics import Statistics

__all__ = ["FORMAT", "load", "read_archive", "save"]

FORMAT = 1  # raise it when an older reader would misread the file; keep reading every older number


def save(model: TableModel, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a model to ``path``, whole or not at all."""
    from safetensors.numpy import save as to_bytes

    arrays = _arrays_of(model)
    header = _header_of(model, arrays) | {"extra": extra or {}}
    text = json.dumps(header, ensure_ascii=False, allow_nan=False)
    content = to_bytes(arrays, metadata={"nae": text, "nae_sha256": _digest(text.encode())})
    _write_atomically(Path(path), content)


def load(path: str | os.PathLike[str]) -> TableModel:
    """Read a model written by :func:`save`. Nothing in the file is executed."""
    return read_archive(path)[0]


def read_archive(path: str | os.PathLike[str]) -> tuple[TableModel, dict[str, Any]]:
    """Return the model in a file and whatever was saved beside it."""
    header, arrays = _read(Path(path))
    try:
        return _build(header, arrays), header["extra"]
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FormatError(f"{path} must hold a whole model; its header is broken ({error!r}).") from error


def _arrays_of(model: TableModel) -> dict[str, AnyArray]:
    arrays = {
        "knots": model.schema.knots,
        "experts": model.experts,
        "intercept": model.intercept,
        "gate.terms": model.gate.terms,
        "gate.bias": model.gate.bias,
    }
    if model.gate.mix is not None and model.gate.mix_bias is not None:
        arrays |= {"gate.mix": model.gate.mix, "gate.mix_bias": model.gate.mix_bias}
    if model.statistics is not None:
        arrays |= {f"statistics.{name}": value for name, value in model.statistics.to_arrays().items()}
    return {name: np.ascontiguousarray(value) for name, value in arrays.items()}


def _header_of(model: TableModel, arrays: dict[str, AnyArray]) -> dict[str, Any]:
    from nae import __version__

    return {
        "format": FORMAT,
        "library": __version__,
        "schema": model.schema.to_dict(),
        "gate": model.gate.kind,
        "routing": {"name": model.routing.name, "n_active": model.routing.n_active},
        "link": model.link.name,
        "outputs": list(model.outputs),
        "classes": list(model.classes),
        "training": model.training,
        "sha256": {name: _digest(value.tobytes()) for name, value in arrays.items()},
    }


def _read(path: Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if "nae" not in metadata:
                raise FormatError(f"{path} must be a model file of this library; its header is missing.")
            header = _check_header(path, metadata)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise FormatError(f"No file is at {path}.") from None
    except IsADirectoryError:
        raise FormatError(f"A model must be a file; {path} is a folder.") from None
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} must be a whole model file; {error}.") from error
    for name, array in arrays.items():
        if header["sha256"].get(name) != _digest(np.ascontiguousarray(array).tobytes()):
            raise FormatError(f"{path} was changed or damaged after it was written: {name!r} fails its checksum.")
    return header, arrays


def _check_header(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    text = metadata["nae"]
    if metadata.get("nae_sha256") != _digest(text.encode()):
        raise FormatError(f"{path} was changed or damaged after it was written: the header fails its checksum.")
    header = json.loads(text)
    if not isinstance(header, dict) or not isinstance(header.get("format"), int):
        raise FormatError(f"{path} must say which format it has; its header does not.")
    if header["format"] > FORMAT:
        raise FormatError(
            f"{path} has format {header['format']}; this version reads up to {FORMAT}. "
            "pip install -U neural-additive-experts"
        )
    return header


def _build(header: dict[str, Any], arrays: dict[str, AnyArray]) -> TableModel:
    if header["gate"] not in GATES or header["link"] not in LINKS or header["routing"]["name"] not in ROUTINGS:
        raise FormatError(f"Unknown gate, link or routing: {header['gate']}, {header['link']}, {header['routing']}.")
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.all(np.isfinite(array)):
            raise FormatError(f"{name!r} must hold finite numbers.")
    schema = Schema.from_dict(header["schema"], arrays["knots"])
    if len(set(schema.names)) != len(schema):
        raise FormatError("Feature names must differ.")
    statistics = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith("statistics.")}
    model = TableModel(
        schema=schema,
        experts=arrays["experts"],
        gate=GateTables(
            header["gate"],
            arrays["gate.terms"],
            arrays["gate.bias"],
            arrays.get("gate.mix"),
            arrays.get("gate.mix_bias"),
        ),
        routing=ROUTINGS[header["routing"]["name"]](int(header["routing"]["n_active"])),
        intercept=arrays["intercept"],
        link=LINKS[header["link"]],
        outputs=tuple(header["outputs"]),
        classes=tuple(header["classes"]),
        statistics=Statistics(**statistics) if statistics else None,
        training=header["training"],
    )
    _check_shapes(model)
    return model


def _check_shapes(model: TableModel) -> None:
    if model.experts.ndim != 4:
        raise FormatError(f"'experts' must have four axes; got {model.experts.ndim}.")
    slots, features = model.schema.n_slots, model.n_features
    experts, outputs, members = model.experts.shape[1:]
    width = model.gate.terms.shape[1]
    logits = experts * features
    expected: dict[str, tuple[AnyArray, tuple[int, ...]]] = {
        "experts": (model.experts, (slots, experts, outputs, members)),
        "intercept": (model.intercept, (outputs,)),
        "gate.terms": (model.gate.terms, (slots, width, members)),
        "gate.bias": (model.gate.bias, (logits if model.gate.kind == "diagonal" else width, members)),
    }
    if model.gate.kind in ("low-rank", "deep"):
        if model.gate.mix is None or model.gate.mix_bias is None:
            raise FormatError(f"A {model.gate.kind} gate must have 'gate.mix' and 'gate.mix_bias'.")
        expected["gate.mix"] = (model.gate.mix, (members, width, logits))
        expected["gate.mix_bias"] = (model.gate.mix_bias, (logits, members))
    elif width != (experts if model.gate.kind == "diagonal" else logits):
        raise FormatError(f"A {model.gate.kind} gate's terms do not fit {experts} experts; got width {width}.")
    for name, (array, shape) in expected.items():
        if array.shape != shape:
            raise FormatError(f"{name!r} must have shape {shape}; got {array.shape}.")
    if len(model.outputs) != outputs:
        raise FormatError(f"A model of {outputs} outputs must name them; got {len(model.outputs)} names.")
    if not 1 <= model.routing.n_active <= experts:
        raise FormatError(f"n_active must be in [1, {experts}]; got {model.routing.n_active}.")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_atomically(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
