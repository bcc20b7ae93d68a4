"""The operations that are killed."""

from pathlib import Path

import pyarrow.parquet

import nae
import nae.cli.app
from benchmarks.faults.rows import SETTINGS, make_model, make_table
from benchmarks.faults.trial import Subject
from nae.errors import FormatError
from nae.estimators import NAEClassifier, NAERegressor
from nae.export import write_c, write_json, write_sql
from nae.report import write_report
from nae.tables import load, save
from nae.training.checkpoint import RunState, read_state, write_state
from nae.training.history import Epoch
from nae.training.workers import ALONE

__all__ = ["SUBJECTS", "Careless", "Checkpointed", "Predicting", "Saving", "Streaming"]

_MODEL = "model.nae"
_N_FILES = 5


class Saving:
    """Write a model, its report and its exports over those of an older model."""

    name = "save, report and export"

    def __init__(self) -> None:
        self._older, self._newer = make_model(seed=1), make_model()
        self._rows = make_table(200)

    def start(self, place: Path) -> None:
        (place / "out").mkdir()
        save(self._newer, place / "newer.nae")
        pyarrow.parquet.write_table(self._rows, place / "rows.parquet")
        _write_all(self._older, place)

    def work(self, place: Path) -> None:
        _write_all(load(place / "newer.nae"), place)

    def is_whole(self, path: Path) -> bool:
        return False


def _write_all(model: nae.TableModel, place: Path) -> None:
    out = place / "out"
    save(model, out / _MODEL)
    write_report(model, pyarrow.parquet.read_table(place / "rows.parquet"), out / "report.html", target="price")
    write_json(model, out / "model.json")
    write_c(model, out)
    write_sql(model, out / "tables.sql")


class Checkpointed:
    """Fit with a checkpoint after every epoch, from which the next run continues."""

    name = "fit with checkpoints"
    _state = "state.safetensors"

    def start(self, place: Path) -> None:
        pyarrow.parquet.write_table(make_table(600), place / "rows.parquet")

    def work(self, place: Path) -> None:
        estimator = NAEClassifier(**SETTINGS, max_epochs=12)  # dropout is random, and must continue, too
        checkpoints = _StateFile(place / self._state)
        rows = nae.scan(place / "rows.parquet", cache_folder=place)
        estimator.fit_share(rows, "town", workers=ALONE, checkpoints=checkpoints)
        save(estimator.model_, place / _MODEL)

    def is_whole(self, path: Path) -> bool:
        if path.name != self._state:
            return False
        try:
            return len(read_state(path).arrays) > 0
        except FormatError:
            return False


class _StateFile:
    """The last state of a training, in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def latest(self) -> RunState | None:
        return read_state(self.path) if self.path.exists() else None

    def save(self, state: RunState, epoch: Epoch) -> None:
        write_state(self.path, state)


class Streaming:
    """Fit from files through a cache on disk. The next run starts again."""

    name = "streamed fit"

    def __init__(self) -> None:
        self._older = make_model(seed=1)

    def start(self, place: Path) -> None:
        for folder in ("in", "cache"):
            (place / folder).mkdir()
        for i in range(_N_FILES):
            pyarrow.parquet.write_table(make_table(400, seed=i), place / "in" / f"{i}.parquet")
        save(self._older, place / _MODEL)

    def work(self, place: Path) -> None:
        rows = nae.scan(place / "in", cache_folder=place / "cache", block_rows=500)
        save(NAERegressor(**SETTINGS, max_epochs=2).fit(rows, "price").model_, place / _MODEL)

    def is_whole(self, path: Path) -> bool:
        return False


class Predicting:
    """Predict many files into a folder. The next run continues."""

    name = "folder prediction"

    def __init__(self) -> None:
        self._model = make_model()

    def start(self, place: Path) -> None:
        (place / "in").mkdir()
        save(self._model, place / _MODEL)
        for i in range(_N_FILES):
            pyarrow.parquet.write_table(make_table(3000, seed=i), place / "in" / f"{i}.parquet")

    def work(self, place: Path) -> None:
        command = ["predict", f"{place / _MODEL}", f"{place}/in/*.parquet", "-o", f"{place}/out/", "--contributions"]
        code = nae.cli.app.run(command)
        if code != 0:
            raise SystemExit(code)

    def is_whole(self, path: Path) -> bool:
        return False


class Careless:
    """A defective twin that writes directly to the final name. Its losses must be found."""

    name = "careless writer"

    def start(self, place: Path) -> None:
        (place / "out").write_bytes(b"old")

    def work(self, place: Path) -> None:
        with (place / "out").open("wb") as file:
            for _ in range(2000):
                file.write(b"new" * 1000)

    def is_whole(self, path: Path) -> bool:
        return False


SUBJECTS: dict[str, type[Subject]] = {
    "save": Saving,
    "checkpoints": Checkpointed,
    "streaming": Streaming,
    "predict": Predicting,
}
