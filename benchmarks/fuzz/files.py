"""Changed model files: with changed bytes and old checksums, or with a changed structure and correct checksums."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.fuzz.laws import check_laws, check_saved, odd_rows
from benchmarks.fuzz.models import small_models
from benchmarks.fuzz.targets import Attempt, Violation, draw, shown
from nae.card import make_card
from nae.errors import FormatError
from nae.tables import TableModel, load
from nae.tables.archive import pack, parse_archive
from tests.laws.assertions import assert_same_model
from tests.tables.mutations import BROKEN, FORGED

__all__ = ["check_broken", "check_forged", "forge", "prepare"]

_FROM_DISK = 32  # one in this many attempts uses a file on disk


def prepare(folder: Path, _: ExitStack) -> Attempt:
    """Return the attempt: half of the attempts break bytes, half forge a file."""
    models = small_models()
    contents = [pack(model, extra={"note": "beside it"} if i % 4 == 0 else None) for i, model in enumerate(models)]

    def attempt(random: np.random.Generator) -> str:
        i, other = random.integers(len(contents), size=2)
        content = contents[i]
        if random.random() < 0.5:
            content = draw(BROKEN, random)(content, contents[other], random)
            with shown(content, ending="nae"):
                return check_broken(content, models[i], contents[i])
        content = forge(content, contents[other], random)
        path = folder / "model.nae" if random.integers(_FROM_DISK) == 0 else None
        with shown(content, ending="nae"):
            return check_forged(content, random, path)

    return attempt


def forge(content: bytes, other: bytes, random: np.random.Generator) -> bytes:
    """Return a file after a few mutations, with correct checksums."""
    for _ in range(draw((1, 1, 1, 2, 3), random)):
        try:
            content = draw(FORGED, random)(content, other, random)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            break  # an earlier mutation left no place for this one
    return content


def check_broken(content: bytes, original: TableModel, before: bytes) -> str:
    """Check that broken bytes are refused, or give the same model."""
    try:
        model, extra = parse_archive(content)
    except FormatError:
        return "broken, refused"
    assert_same_model(model, original)
    if extra != parse_archive(before)[1]:
        raise Violation("what was saved beside the model differs")
    return "broken, the same model" if content != before else "unchanged"


def check_forged(content: bytes, random: np.random.Generator, path: Path | None = None) -> str:
    """Check that a forged file is refused, or is a model that obeys the laws."""
    try:
        if path is None:
            model = parse_archive(content)[0]
        else:
            path.write_bytes(content)
            model = load(path)
    except FormatError:
        return "forged, refused"
    check_laws(model, odd_rows(model, random))
    check_saved(model)
    make_card(model)
    if model.statistics is not None:
        model.explain_global()
    return "forged, a model that works"
