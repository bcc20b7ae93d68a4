"""The targets of fuzzing: one module each, imported on request, so that each needs only its own packages."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["TARGETS", "Attempt", "Target", "Violation", "draw", "shown"]

# Tries one random input and returns a word for the outcome. It raises Violation if the property does not hold.
Attempt = Callable[[np.random.Generator], str]


class Violation(Exception):  # noqa: N818, a violation is not an error of this program
    """A property does not hold for an input."""

    def __init__(self, sentence: str, content: bytes = b"", *, ending: str = "bin") -> None:
        super().__init__(sentence)
        self.sentence, self.content, self.ending = sentence, content, ending

    def __reduce__(self) -> tuple[object, ...]:  # because it is sent from one process to another
        return _violation, (self.sentence, self.content, self.ending)


@dataclass(frozen=True)
class Target:
    """A kind of input, and the property that must hold for each."""

    name: str
    holds: str
    """The property, as a sentence."""
    seconds: float
    """The longest time that an attempt may take."""
    megabytes: float
    """The most memory that one attempt may add to the process."""

    def prepare(self, folder: Path, closing: ExitStack) -> Attempt:
        """Import the packages of the target, and create what its attempts share.

        Files go to an empty folder. Resources that must be closed in the end are registered with ``closing``.
        """
        attempt: Attempt = import_module(f"benchmarks.fuzz.{self.name}").prepare(folder, closing)
        return attempt


_ALL = (
    Target(
        "files",
        "A changed model file is refused with a FormatError, or loads as a model that obeys the laws and is the same "
        "after saving. Bytes changed under the old checksums are refused, or load as the same model.",
        seconds=10,
        megabytes=128,
    ),
    Target(
        "estimators",
        "A changed file of an estimator is refused with an error of the library, or loads as one that predicts.",
        seconds=20,
        megabytes=512,
    ),
    Target(
        "readers",
        "A damaged table is read, or refused in a sentence; `nae predict` ends with 0 or 2.",
        seconds=30,
        megabytes=1024,
    ),
    Target(
        "tables",
        "A wild table is fitted into a model that obeys the laws and is the same after saving, or is refused in a "
        "sentence.",
        seconds=120,
        megabytes=1024,
    ),
    Target(
        "agreement",
        "Every evaluator gives numpy's scores, predictions, contributions and bounds.",
        seconds=120,
        megabytes=1024,
    ),
    Target(
        "server",
        "A request is answered with a documented status and a JSON body, never with 500, and the server stays healthy.",
        seconds=60,
        megabytes=512,
    ),
)
TARGETS: dict[str, Target] = {target.name: target for target in _ALL}


@contextmanager
def shown(content: bytes, *, ending: str) -> Iterator[None]:
    """Turn every error inside the block into a violation with this input."""
    try:
        yield
    except Violation as error:
        ending = error.ending if error.content else ending
        raise Violation(error.sentence, error.content or content, ending=ending) from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        text = " ".join(str(error).split())[:300]
        raise Violation(f"{type(error).__name__} from {where}: {text}", content, ending=ending) from error


def draw(options: Sequence[Any], random: np.random.Generator) -> Any:
    """Return a random one of several things."""
    return options[int(random.integers(len(options)))]


def _violation(sentence: str, content: bytes, ending: str) -> Violation:
    return Violation(sentence, content, ending=ending)
