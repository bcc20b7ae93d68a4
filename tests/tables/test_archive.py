"""Model files: written whole or not at all, and read with suspicion."""

import copy
import errno
import json
import os
import stat
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nae
from nae.errors import FormatError
from nae.tables import TrainingSummary, save
from nae.tables.archive import read_archive
from nae.tables.container import MAX_HEADER, parse_json
from tests.golden.make_format_1 import FOLDER
from tests.laws.assertions import assert_same_model
from tests.laws.models import make_model
from tests.tables.mutations import Parts, join, mend, split

GOLDEN = (FOLDER / "format_1.nae").read_bytes()
CLAMPED = (FOLDER / "format_2.nae").read_bytes()
GIGABYTE = 2**30


def forged(change: Callable[[dict[str, Any], dict[str, Any]], None], content: bytes = GOLDEN) -> bytes:
    """Return a golden file after a change of its two headers, its checksums mended."""
    container, header, body = copy.deepcopy(split(content))
    change(container, header)
    return mend((container, header, body))


def announce(container: dict[str, Any], header: dict[str, Any]) -> None:
    shape, (start, _) = [GIGABYTE], container["experts"]["data_offsets"]
    container["experts"] |= {"shape": shape, "data_offsets": [start, start + 4 * GIGABYTE]}
    header["arrays"]["experts"]["shape"] = shape


def with_numbers(name: str, change: Callable[[np.ndarray], None], content: bytes = GOLDEN) -> bytes:
    """Return a golden file with other numbers in one array, its checksums mended."""
    parts: Parts = copy.deepcopy(split(content))
    container, header, body = parts
    start, end = container[name]["data_offsets"]
    values = np.frombuffer(body[start:end], dtype="<f4" if container[name]["dtype"] == "F32" else "<f8").copy()
    change(values)
    return mend((container, header, body[:start] + values.tobytes() + body[end:]))


def set_first(value: float) -> Callable[[np.ndarray], None]:
    return lambda values: values.__setitem__(0, value)


def feature(i: int, **change: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, header: header["schema"]["features"][i].update(change)


def put(**change: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, header: header.update(change)


def place(name: str, **change: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda container, _: container[name].update(change)


def doubled_key() -> bytes:
    container, _, body = split(GOLDEN)
    text = json.dumps(container).replace('"knots":', '"experts":', 1).encode()
    return len(text).to_bytes(8, "little") + text + body


def many_keys() -> bytes:
    """Return a file whose header holds 60,000 keys, the last of them twice."""
    text = ("{" + ",".join(f'"key {min(i, 59_999)}":0' for i in range(60_001)) + "}").encode()
    return len(text).to_bytes(8, "little") + text


def nested() -> bytes:
    text = b"[" * 200_000 + b"]" * 200_000
    return len(text).to_bytes(8, "little") + text


HOSTILE = {
    "empty": (b"", "has 0 bytes and no header"),
    "a few bytes": (GOLDEN[:5], "has 5 bytes and no header"),
    "half a header": (GOLDEN[:100], "bytes are announced, 92 are there"),
    "half of the arrays": (GOLDEN[:-1000], "bytes of arrays; the file has"),
    "a byte too many": (GOLDEN + b"\0", "bytes of arrays; the file has"),
    "a giant header": ((2**63).to_bytes(8, "little") + GOLDEN[8:], f"at most {MAX_HEADER} bytes"),
    "text": (b"not a model at all, just text", "at most"),
    "a flipped bit in an array": (GOLDEN[:-1] + bytes([GOLDEN[-1] ^ 1]), "fails its checksum"),
    "a key twice": (doubled_key(), "'experts' twice"),
    "a key twice among many": (many_keys(), "'key 59999' twice"),
    "deep nesting": (nested(), "nested too deep"),
    "NaN in the header": (forged(put(training={"x": float("nan")})), "NaN, which is not a JSON number"),
    "another safetensors file": (join({"__metadata__": {"a": "b"}}, b""), "without the header of this library"),
    "metadata of numbers": (join({"__metadata__": {"nae": 3}}, b""), "texts by name"),
    "a list as header": (join([1], b""), "not an object"),
    "gigabytes announced": (forged(announce), "must begin at byte|announce"),
    "a type that is a list": (forged(place("knots", dtype=[])), "must hold F32 or F64"),
    "a type that is an object": (forged(place("knots", dtype={})), "must hold F32 or F64"),
    "integers": (forged(place("knots", dtype="I64")), "must hold F32 or F64"),
    "a negative shape": (forged(place("knots", shape=[-1, -6])), "list of whole numbers"),
    "a boolean shape": (forged(place("knots", shape=[True, 6])), "list of whole numbers"),
    "another shape": (forged(place("knots", shape=[2, 3])), "fails its checksum"),
    "overlapping arrays": (forged(place("knots", data_offsets=[0, 48])), "must begin at byte"),
    "NaN knots": (with_numbers("knots", set_first(np.nan)), "'knots' must hold finite numbers"),
    "unsorted knots": (with_numbers("knots", set_first(0.9)), "knots of 'size' must ascend"),
    "equal knots": (with_numbers("knots", set_first(0.5)), "knots of 'size' must ascend"),
    "a boolean of 2": (with_numbers("knots", lambda v: v.__setitem__(-1, 2.0)), "boolean 'is_new' must be 0 and 1"),
    "infinite experts": (with_numbers("experts", set_first(np.inf)), "'experts' must hold finite numbers"),
    "experts whose sums overflow": (with_numbers("experts", lambda v: v.fill(8e37)), "sums of 3 of them are finite"),
    "giant logits": (with_numbers("gate.mix", set_first(1e20)), "numbers up to 1e"),
    "negative weights": (with_numbers("statistics.weight", set_first(-1.0)), "weight' must not be negative"),
    "names twice": (forged(feature(1, name="size")), "'size' occurs twice"),
    "levels twice": (forged(feature(2, levels=["oak", "oak"])), "levels of 'kind' must differ"),
    "a level both common and rare": (forged(feature(2, rare=["oak", "raw wood"])), "levels of 'kind' must differ"),
    "levels of numbers": (forged(feature(2, levels=[1, 2])), "as texts"),
    "too many knots": (forged(feature(0, n_knots=10**6)), "knots of 'size' must be 1000000"),
    "no knots": (forged(feature(0, n_knots=0)), "must have at least one knot"),
    "half a knot": (forged(feature(0, n_knots=4.0)), "'n_knots' as int; got float"),
    "an unknown kind": (forged(feature(0, kind="date")), "A feature must be one of"),
    "no features": (forged(put(schema={"features": [], "has_names": True})), "must have at least one feature"),
    "an unknown gate": (forged(put(gate="wide")), "gate must be one of"),
    "another gate": (forged(put(gate="additive")), "additive gate must not have 'gate.mix'"),
    "an unknown link": (forged(put(link="probit")), "link must be one of"),
    "a link that does not fit": (forged(put(link="log")), "must have one of the links"),
    "classes that do not fit": (forged(put(classes=["a", "b"])), "2 classes cannot have 3 outputs"),
    "classes twice": (forged(put(classes=["a", "a", "b"])), "names of the classes must differ"),
    "a loss that is null": (forged(put(training={"loss": None})), "'loss' of the training summary must be a text"),
    "a threshold that is null": (
        forged(put(training={"huber_threshold": None})),
        "must be a list of numbers; got 'None'",
    ),
    "a quality that is null": (
        forged(put(training={"quality": {"AUC": None}})),
        "'quality' .* must be numbers by name",
    ),
    "an interval of one number": (
        forged(put(training={"quality_intervals": {"AUC": [1]}})),
        "must be pairs of numbers",
    ),
    "a rule without values": (forged(put(training={"baseline": {"level": 0.5}})), "'baseline' .* must be 'values'"),
    "an offset that is a number": (forged(put(training={"offset": 3})), "'offset' .* must be a list of texts, or null"),
    "rows that are text": (forged(put(training={"n_rows": "7"})), "'n_rows' .* must be a whole number from 0 up"),
    "half a split": (
        forged(put(training={"split": {"rows_sha256": "", "seed": 0}})),
        "'split' .* must be 'rows_sha256'",
    ),
    "a class weight of zero": (forged(put(class_weight=[1.0, 0.0, 1.0])), "a positive number for each of 3 classes"),
    "a class weight as text": (forged(put(class_weight=[1.0, "2", 1.0])), "a positive number for each of 3 classes"),
    "too few class weights": (forged(put(class_weight=[1.0, 2.0])), "a positive number for each of 3 classes"),
    "class weights that are none": (forged(put(class_weight=None)), "'class_weight' as list; got NoneType"),
    "outputs that do not fit": (forged(put(outputs=["a"])), "as many names for them; got 1"),
    "no active expert": (forged(put(routing={"name": "softmax", "n_active": 0})), "n_active must be in"),
    "an unknown routing": (forged(put(routing={"name": "best", "n_active": 1})), "routing must be one of"),
    "a key too many": (forged(put(execute="rm")), "missing or unexpected"),
    "format 0": (forged(put(format=0)), "from 1 up"),
    "format true": (forged(put(format=True)), "from 1 up"),
    "a later format": (forged(put(format=99)), "has format 99; this version reads up to 3"),
    "clamps that cross": (with_numbers("clamps.lower", set_first(9.0), CLAMPED), "lower' must not be above"),
    "infinite clamps": (with_numbers("clamps.upper", set_first(np.inf), CLAMPED), "upper' must hold finite numbers"),
    "giant clamps": (with_numbers("clamps.upper", set_first(8e37), CLAMPED), "'clamps.upper' must hold numbers up to"),
    "clamps of format 1": (forged(put(format=1), CLAMPED), "'clamps.upper'.* are missing or unexpected"),
    "format 2 without clamps": (forged(put(format=2)), "'clamps.upper'.* are missing or unexpected"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_quickly_and_without_its_memory(name: str, tmp_path: Path) -> None:
    content, match = HOSTILE[name]
    path = tmp_path / "m.nae"
    path.write_bytes(content)
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(FormatError, match=match):
        nae.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * 2**20
    assert time.perf_counter() - start < 5


def test_the_golden_file_itself_is_not_refused_after_mending(tmp_path: Path) -> None:
    (tmp_path / "m.nae").write_bytes(mend(split(GOLDEN)))
    assert_same_model(nae.load(tmp_path / "m.nae"), nae.load(FOLDER / "format_1.nae"))


def test_weights_of_classes_are_kept(tmp_path: Path) -> None:
    model = replace(nae.load(FOLDER / "format_1.nae"), class_weight=(1.0, 2.5, 0.5))
    save(model, tmp_path / "m.nae")
    assert nae.load(tmp_path / "m.nae").class_weight == model.class_weight


def test_a_number_beyond_floats_is_refused() -> None:
    with pytest.raises(FormatError, match="larger than the largest float"):
        parse_json('{"x": 1e999}')
    with pytest.raises(FormatError, match="not JSON"):
        parse_json("9" * 5000)


def test_a_zip_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.nae", "w") as archive:
        archive.writestr("../outside", "x")
    with pytest.raises(FormatError, match="must be a whole model file"):
        nae.load(tmp_path / "m.nae")
    assert not (tmp_path.parent / "outside").exists()


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="it is a folder"):
        nae.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="not a plain file"):
        nae.load(tmp_path / "pipe")
    with pytest.raises(FormatError, match="No file is at"):
        nae.load(tmp_path / "none.nae")
    with pytest.raises(FormatError, match="cannot be read"):
        nae.load("null\0byte")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.nae"
    model = make_model(np.random.default_rng(0))
    model.save(path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        make_model(np.random.default_rng(1)).save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["m.nae"]


def test_saving_flushes_the_file_and_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (flushed.append(stat.S_ISDIR(os.fstat(fd).st_mode)), fsync(fd)))
    make_model(np.random.default_rng(0)).save(tmp_path / "m.nae")
    assert flushed == [False, True]
    assert stat.S_IMODE((tmp_path / "m.nae").stat().st_mode) == 0o644


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    model = make_model(np.random.default_rng(0))
    with pytest.raises(FormatError, match="'experts' must hold finite numbers"):
        replace(model, experts=model.experts * np.nan).save(tmp_path / "m.nae")
    with pytest.raises(FormatError, match="holds JSON values only"):
        save(model, tmp_path / "m.nae", extra={"x": object()})
    assert list(tmp_path.iterdir()) == []


def test_odd_names_survive(tmp_path: Path) -> None:
    model = make_model(np.random.default_rng(0), n_features=1)
    odd = "\ud800 ümläut \0 \U0001f600 \u2028"
    renamed = replace(model, training=TrainingSummary(more={"note": odd}))
    renamed.save(tmp_path / "m.nae")
    assert nae.load(tmp_path / "m.nae").training == TrainingSummary(more={"note": odd})


def test_what_is_saved_beside_the_model_comes_back(tmp_path: Path) -> None:
    model = make_model(np.random.default_rng(0))
    save(model, tmp_path / "m.nae", extra={"a": [1, {"b": None}]})
    assert read_archive(tmp_path / "m.nae")[1] == {"a": [1, {"b": None}]}


def test_the_same_model_gives_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    again = "import sys, nae; nae.load(sys.argv[1]).save(sys.argv[2])"
    make_model(np.random.default_rng(0)).save(tmp_path / "first.nae")
    for seed in ("1", "2", "3"):
        command = [sys.executable, "-c", again, str(tmp_path / "first.nae"), str(tmp_path / f"{seed}.nae")]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        assert (tmp_path / f"{seed}.nae").read_bytes() == (tmp_path / "first.nae").read_bytes()


def test_safetensors_reads_what_is_written(tmp_path: Path) -> None:
    from safetensors import safe_open

    model = make_model(np.random.default_rng(0), dtype=np.float32)
    model.save(tmp_path / "model.nae")
    with safe_open(tmp_path / "model.nae", "numpy") as file:
        assert set(file.metadata()) == {"nae", "nae_sha256"}
        np.testing.assert_array_equal(file.get_tensor("experts"), model.experts)
        np.testing.assert_array_equal(file.get_tensor("gate.terms"), model.gate.terms)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such folder: '.*nowhere'$"):
        save(make_model(np.random.default_rng(0)), tmp_path / "nowhere" / "model.nae")
