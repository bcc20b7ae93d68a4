"""The first pass over a scan: assign the columns to roles, and survey their values."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from nae._warnings import warn
from nae.errors import ConfigError, DataError, NAEError
from nae.estimators.given import Given
from nae.scanning.cache import check_space
from nae.scanning.chunks import Roles
from nae.scanning.scan import Scan
from nae.scanning.survey import Findings, Survey, survey_rows
from nae.training.progress import pass_bar
from nae.training.workers import Workers

__all__ = ["Surveyed", "reported", "survey_scan"]


@dataclass(frozen=True, eq=False)
class Surveyed:
    """A scan after the first pass."""

    scan: Scan
    """The scan for the second pass."""
    roles: Roles
    survey: Survey
    """The survey of all workers' rows."""
    n_own_rows: int
    """The number of rows of this worker."""


@contextmanager
def reported(scan: Scan, *, is_verbose: bool) -> Iterator[Scan]:
    """Yield the scan, with a progress bar if one is wanted and the scan does not report progress already."""
    with pass_bar(is_shown=is_verbose and scan.progress is None) as show:
        yield scan if show is None else scan.with_progress(show)


def survey_scan(given: Given, workers: Workers) -> Surveyed:
    """Read the files once, together with the other workers."""
    scan, roles, is_classes = given.X, _read_roles(given), given.target.has_classes
    n_rows = scan.count_rows()
    if n_rows is not None:  # checked before the first pass, so that an error comes early
        check_space(n_rows * (3 * len(roles.features) + 20), scan.cache_folder)
    scan = scan if is_classes else scan.with_numbers(roles.target)
    scan = scan.with_numbers([*roles.offset, *((roles.weight,) if roles.weight else ())])
    with reported(scan, is_verbose=bool(given.parameters.verbose)) as shown:
        read = partial(
            survey_rows,
            shown,
            roles,
            is_classes=is_classes,
            feature_types=given.parameters.feature_types,
            has_values=given.target.needs_values,
        )
        survey, n_own_rows = _survey_together(read, workers, is_classes=is_classes)
    if survey.bad_rows.count:
        warn(str(survey.bad_rows))
    crowded = [column.name for column in survey.columns if not column.levels.is_exact]
    if crowded:
        warn(
            f"Columns {crowded} have too many levels to count each one. A sketch finds the frequent levels; rare "
            "levels that it misses count as unseen. Drop a column that is an identifier."
        )
    return Surveyed(scan, roles, survey, n_own_rows)


def _survey_together(read: Callable[[], Findings], workers: Workers, *, is_classes: bool) -> tuple[Survey, int]:
    """Survey this worker's rows, and merge the findings of all workers. All workers raise an error of any of them."""
    own: Findings | NAEError
    try:
        own = read()
    except NAEError as error:
        if workers.count == 1:
            raise
        own = error
    found = workers.gather(own)
    for one in found:
        if isinstance(one, NAEError):
            raise one
    n_own_rows = found[workers.rank].n_rows
    for other in found[1:]:
        found[0].merge(other)
    return found[0].survey(is_classes=is_classes), n_own_rows


def _read_roles(given: Given) -> Roles:
    """Return the roles of the columns of a scan."""
    scan: Scan = given.X

    def names(value: Any, what: str) -> tuple[str, ...]:
        found = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else ()
        if not found or not all(isinstance(name, str) for name in found):
            raise ConfigError(
                f"With a scan, {what} must be the name of a column; got {type(value).__name__}, as in "
                f"fit(nae.scan(…), y='price')."
            )
        return tuple(scan.find(name) for name in found)

    target = names(given.y, "y")
    weight = None if given.sample_weight is None else names(given.sample_weight, "sample_weight")[0]
    base = () if given.offset is None else names(given.offset, "offset")
    others = {*target, *base, weight}
    features = tuple(name for name in scan.columns if name not in others)
    if not features:
        raise DataError(f"The scan must have columns besides {sorted(name for name in others if name)}; it has none.")
    return Roles(features, target, weight, base)
