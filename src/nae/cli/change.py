"""``nae compare`` of two versions of a model, without a target: how much changes at most."""

import math
from collections.abc import Sequence

from rich.table import Table

from nae.cli.columns import align
from nae.cli.console import digits, make_table, out
from nae.cli.options import load_model
from nae.cli.reading import read_file
from nae.errors import ConfigError
from nae.explanation import Change, ChangeCertificate, RowChange, RowChanges, compare
from nae.explanation.inputs import rounded_up
from nae.tables import TableModel

__all__ = ["compare_versions"]

_MOST_LINES = 20


def compare_versions(
    files: Sequence[str], *, rows: str | None, max_change: float | None, output: str | None, as_json: bool
) -> int:
    """Print how much changes between two models, and return the exit code: 1 if it is more than ``max_change``."""
    if len(files) != 2:
        raise ConfigError(
            f"--max-change and --on compare two models: nae compare old.nae new.nae; got {len(files)} files."
        )
    if max_change is not None and not 0 <= max_change < math.inf:
        raise ConfigError(f"--max-change must be a number of at least 0, in units of the score; got {max_change:g}.")
    first, second = (load_model(path) for path in files)
    if output is not None and len(first.classes) == 2:
        first, output = first.for_class(output), None
    found = _changes(first, second, rows, output)
    largest = found.bound if isinstance(found, ChangeCertificate) else found.largest
    console = out()
    if as_json:
        console.print(found.to_json(), soft_wrap=True)
    else:
        console.print(_table(found))
        for sentence in (*_sentences(found), *_verdict(largest, max_change, rows)):
            console.print(sentence, soft_wrap=True)
    return int(max_change is not None and not largest <= max_change)


def _changes(
    first: TableModel, second: TableModel, rows: str | None, output: str | None
) -> ChangeCertificate | RowChanges:
    compared = compare(first, second)
    if rows is None:
        return compared.certificate(output=output)
    return compared.on(align(read_file(rows), first.schema), output=output)


def _table(found: ChangeCertificate | RowChanges) -> Table:
    """Return the changes of the score, and those of the features that change most."""
    shown = {(one.feature, one.output): _cells(one) for one in found.changes}
    is_plain = len({output for _, output in shown}) == 1
    scores = [key for key in shown if key[0] is None]
    features = sorted((key for key in shown if key[0] is not None), key=lambda key: -shown[key][0])
    if isinstance(found, ChangeCertificate):
        table = make_table("Changes, for any input", "", "at most", "found")
    else:
        table = make_table(f"Changes on {found.n_rows:,} rows", "", "at most", "on average")
    for feature, output in (*scores, *features[:_MOST_LINES]):
        name = "score" if feature is None else feature
        cells = map(digits, shown[feature, output])
        table.add_row(name if is_plain else f"{name} of {output}", *cells, end_section=(feature, output) == scores[-1])
    return table


def _cells(one: Change | RowChange) -> tuple[float, float]:
    return (one.bound, one.found) if isinstance(one, Change) else (one.largest, one.mean)


def _sentences(found: ChangeCertificate | RowChanges) -> list[str]:
    if isinstance(found, RowChanges):
        return []
    scores = [one.sentence for one in found.changes if one.feature is None]
    return [*scores, *([found.prediction_sentence] if found.prediction_sentence else [])]


def _verdict(largest: float, most: float | None, rows: str | None) -> list[str]:
    if most is None:
        return []
    how = "for any input" if rows is None else f"on the rows of {rows}"
    if largest <= most:
        return [f"Within {most:g}: the score changes by at most {rounded_up(largest)} {how}."]
    return [f"Beyond {most:g}: the score may change by up to {rounded_up(largest)} {how}."]
