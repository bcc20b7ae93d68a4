"""The versions of the packages behind a model."""

from importlib.metadata import packages_distributions, version

from benchmarks.guarantees.subjects import OURS, Subject
from benchmarks.run import own_version

__all__ = ["versions_of"]


def versions_of(subject: Subject) -> dict[str, str]:
    """Return the version of each package by its name."""
    if subject.is_ours:
        return {OURS: own_version()}
    known = packages_distributions()
    names = {known[module.partition(".")[0]][0] for module in subject.make({}).modules}
    return {name: version(name) for name in sorted(names)}
