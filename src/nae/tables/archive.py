"""Model files: a safetensors container whose metadata holds a JSON header, specified in docs/format.md."""

import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from nae._files import write_whole
from nae._typing import AnyArray
from nae.encoding.schema import Schema
from nae.errors import FormatError
from nae.links import LINKS
from nae.tables.checks import check_arrays, check_header, check_model
from nae.tables.clamps import Clamps
from nae.tables.container import MAX_HEADER, Container, parse_container, parse_json, read_container, write_container
from nae.tables.evidence import Evidence
from nae.tables.gates import GateTables
from nae.tables.model import TableModel
from nae.tables.residuals import Residuals, Sizes
from nae.tables.routing import ROUTINGS
from nae.tables.statistics import Statistics
from nae.tables.summary import TrainingSummary

__all__ = ["FORMAT", "describe", "load", "pack", "parse_archive", "read_archive", "save"]

FORMAT = 3  # raise the number when an older reader would misread the file; every older format must stay readable
_WITH_CLAMPS, _WITH_DOUBTS = 2, 3  # a model without them is written as what it was before, for older readers
_TABLES = ("knots", "experts", "intercept", "gate.terms", "gate.bias")
_STATISTICS = tuple(f"statistics.{item.name}" for item in fields(Statistics))
_CLAMPS = tuple(f"clamps.{item.name}" for item in fields(Clamps))
_RESIDUALS = ("residuals.quantiles",)
_BY_LEVEL = ("residuals.by_level",)
_SIZES = tuple(f"residuals.{item.name}" for item in fields(Sizes))
_EVIDENCE = tuple(f"evidence.{item.name}" for item in fields(Evidence))


def save(model: TableModel, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a model to ``path``. The file is written completely or not at all.

    Parameters
    ----------
    model
        The model.
    path
        Path of the file. An existing file is replaced when the new one is complete.
    extra
        JSON values to store in the same file. :func:`read_archive` returns them.
    """
    write_whole(path, pack(model, extra=extra))


def pack(model: TableModel, *, extra: dict[str, Any] | None = None) -> bytes:
    """Return the content of a model file."""
    header, arrays = describe(model)
    header["extra"] = extra or {}
    try:
        text = json.dumps(header, allow_nan=False)  # ASCII holds any text, even half a surrogate pair
    except (TypeError, ValueError) as error:
        raise FormatError(
            f"A model file holds JSON values only; the training summary or extra holds something else ({error})."
        ) from None
    content = write_container({"nae": text, "nae_sha256": _digest(text.encode())}, arrays)
    if len(content) - sum(array.nbytes for array in arrays.values()) > MAX_HEADER:
        raise FormatError(
            f"The header of a model file has at most {MAX_HEADER} bytes; the levels of this model need more."
        )
    parse_archive(content)  # never write a file that could not be read again
    return content


def describe(model: TableModel) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the header of a model file as JSON values, and its arrays by name."""
    arrays = _arrays_of(model)
    return _header_of(model, arrays), arrays


def load(path: str | os.PathLike[str], *, verify: bool = False) -> TableModel:
    """Read a model written by :func:`save`. Nothing in the file is executed.

    Parameters
    ----------
    path
        Path of the file.
    verify
        Whether to prove again what the fit was made to keep (``model.training.constraints``). A promise that the tables
        do not prove is an error.
    """
    model = read_archive(path)[0]
    if verify:
        model.verify(name=str(path))
    return model


def read_archive(path: str | os.PathLike[str]) -> tuple[TableModel, dict[str, Any]]:
    """Return the model in a file, and the values that were saved as ``extra``."""
    container = read_container(Path(path))
    try:
        return _parse(container)
    except FormatError as error:
        raise FormatError(f"{path} must be a whole model file. {error}") from error


def parse_archive(content: bytes) -> tuple[TableModel, dict[str, Any]]:
    """Return the model in the content of a file, and the values that were saved as ``extra``."""
    return _parse(parse_container(content))


def _parse(container: Container) -> tuple[TableModel, dict[str, Any]]:
    header = _read_header(container.metadata)
    check_header(header)
    for name, array in container.arrays.items():
        if header["arrays"].get(name) != _describe(array):
            raise FormatError(f"It was changed or damaged after it was written: {name!r} fails its checksum.")
    missing = sorted(set(header["arrays"]) - set(container.arrays))
    if missing:
        raise FormatError(f"It was changed after it was written: {missing[0]!r} is missing.")
    return _build(header, container.arrays), header["extra"]


def _read_header(metadata: dict[str, str]) -> dict[str, Any]:
    if "nae" not in metadata:
        raise FormatError("It is a safetensors file without the header of this library.")
    text = metadata["nae"]
    if metadata.get("nae_sha256") != _digest(text.encode("utf-8", "surrogatepass")):
        raise FormatError("It was changed or damaged after it was written: the header fails its checksum.")
    header = parse_json(text)
    if not isinstance(header, dict) or type(header.get("format")) is not int or header["format"] < 1:
        raise FormatError("Its format must be a whole number from 1 up.")
    if header["format"] > FORMAT:
        raise FormatError(
            f"It has format {header['format']}; this version reads up to {FORMAT}. "
            "pip install -U neural-additive-experts"
        )
    return header


def _arrays_of(model: TableModel) -> dict[str, AnyArray]:
    arrays = {
        "knots": model.schema.knots,
        "experts": model.experts,
        "intercept": model.intercept,
        **{f"gate.{name}": array for name, array in model.gate.arrays.items()},
    }
    if model.statistics is not None:
        arrays |= {f"statistics.{name}": value for name, value in model.statistics.to_arrays().items()}
    if model.clamps is not None:
        arrays |= {f"clamps.{name}": value for name, value in model.clamps.to_arrays().items()}
    if model.residuals is not None:
        arrays |= {f"residuals.{name}": value for name, value in model.residuals.to_arrays().items()}
    if model.evidence is not None:
        arrays |= {f"evidence.{name}": value for name, value in model.evidence.to_arrays().items()}
    return {name: np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")) for name, value in arrays.items()}


def _header_of(model: TableModel, arrays: dict[str, AnyArray]) -> dict[str, Any]:
    from nae import __version__

    return {
        "format": _format_of(model),
        "library": __version__,
        "schema": model.schema.to_dict(),
        "gate": model.gate.kind,
        "routing": {"name": model.routing.name, "n_active": model.routing.n_active},
        "link": model.link.name,
        "outputs": list(model.outputs),
        "classes": list(model.classes),
        **({"class_weight": list(model.class_weight)} if model.class_weight else {}),
        "training": model.training.to_dict(),
        "arrays": {name: _describe(value) for name, value in arrays.items()},
    }


def _format_of(model: TableModel) -> int:
    """Return the oldest format that holds all of a model."""
    if model.residuals is not None or model.evidence is not None:
        return _WITH_DOUBTS
    return 1 if model.clamps is None else _WITH_CLAMPS


def _describe(array: AnyArray) -> dict[str, Any]:
    """Return type, shape and checksum. The checksum alone would not notice that axes were exchanged."""
    return {
        "dtype": "F32" if array.dtype.itemsize == 4 else "F64",
        "shape": list(array.shape),
        "sha256": _digest(array.tobytes()),
    }


def _build(header: dict[str, Any], arrays: dict[str, AnyArray]) -> TableModel:
    statistics, clamps = (_parts(arrays, part) for part in ("statistics", "clamps"))
    residuals, evidence = (_parts(arrays, part) for part in ("residuals", "evidence"))
    has_clamps = header["format"] == _WITH_CLAMPS or (header["format"] > _WITH_CLAMPS and bool(clamps))
    may_doubt = header["format"] >= _WITH_DOUBTS
    has_residuals = may_doubt and (bool(residuals) or not evidence)
    parts = {
        _STATISTICS: bool(statistics),
        _CLAMPS: has_clamps,
        _RESIDUALS: has_residuals,
        _SIZES: has_residuals and "size" in residuals,
        _BY_LEVEL: has_residuals and "by_level" in residuals,
        _EVIDENCE: may_doubt and bool(evidence),
    }
    check_arrays(arrays, (*_TABLES, *(name for names, is_there in parts.items() if is_there for name in names)))
    schema = Schema.from_dict(header["schema"], arrays["knots"].reshape(-1))
    model = TableModel(
        schema=schema,
        experts=arrays["experts"],
        gate=GateTables(header["gate"], **_parts(arrays, "gate")),
        routing=ROUTINGS[header["routing"]["name"]](header["routing"]["n_active"]),
        intercept=arrays["intercept"],
        link=LINKS[header["link"]],
        outputs=tuple(header["outputs"]),
        classes=tuple(header["classes"]),
        class_weight=tuple(header.get("class_weight", ())),
        statistics=Statistics(**statistics) if statistics else None,
        clamps=Clamps(**clamps) if clamps else None,
        residuals=Residuals.of(residuals) if residuals else None,
        evidence=Evidence(**evidence) if evidence else None,
        training=TrainingSummary.from_dict(header["training"]),
    )
    check_model(model)
    return model


def _parts(arrays: dict[str, AnyArray], whole: str) -> dict[str, AnyArray]:
    """Return the arrays that belong to a part of the model, by their names within it."""
    return {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{whole}.")}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
