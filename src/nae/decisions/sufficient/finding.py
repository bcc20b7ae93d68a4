"""Find the sufficient reasons of rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nae.decisions.sufficient.deciding import decide
from nae.decisions.sufficient.proving import DecidedRow
from nae.decisions.sufficient.results import SufficientReason, SufficientReasons
from nae.decisions.sufficient.searching import search
from nae.encoding.beside import read_offset
from nae.encoding.columns import Columns
from nae.errors import ConfigError
from nae.explanation.local import as_given, shown
from nae.explanation.ranges import check_budget
from nae.explanation.within import read_domains
from nae.ranges import Domain
from nae.tables.model import TableModel

__all__ = ["find_sufficient"]


def find_sufficient(
    model: TableModel,
    columns: Columns,
    *,
    threshold: Any = None,
    toward: Any = None,
    against: Any = None,
    within: Mapping[str, Any] | None = None,
    budget: Any = 32,
    tries: Any = 64,
    offset: Any = None,
    output: str | int | None = None,
) -> SufficientReasons:
    """Return the reasons of rows; see :meth:`nae.tables.answers.decides.Decides.sufficient_reasons`."""
    if not isinstance(tries, (int, np.integer)) or isinstance(tries, bool) or tries < 1:
        raise ConfigError(f"tries must be an integer of at least 1, the number of sets per row; got {tries!r}.")
    cells = model.schema.locate(columns, dtype=model.experts.dtype)
    moved = read_offset(offset, len(cells), model.n_outputs, is_per_class=len(model.classes) > 2)
    moved = np.zeros((len(cells), model.n_outputs)) if moved is None else moved
    scores = model.decision_function(cells).reshape(moved.shape) + moved
    domains, texts = _domains(model, within), [shown(column, digits=6) for column in as_given(model, columns)]
    reasons = []
    for row in range(len(cells)):
        decision = decide(model, scores[row], threshold=threshold, toward=toward, against=against, output=output)
        one = cells.take(np.array([row]))
        found = search(DecidedRow(model, one, moved[row], decision, domains, check_budget(budget)), int(tries))
        names = tuple(model.feature_names[i] for i in found.features)
        values = tuple(texts[i][row] or "missing" for i in found.features)
        reasons.append(SufficientReason(decision.words, names, values, model.n_features, found.is_smallest))
    return SufficientReasons(tuple(reasons))


def _domains(model: TableModel, within: Mapping[str, Any] | None) -> tuple[Domain, ...]:
    """Return the values that every feature may have, in the order of the features."""
    limited = {domain.feature for domain in read_domains(model, (), within)}
    free = [name for i, name in enumerate(model.feature_names) if i not in limited]
    return tuple(sorted(read_domains(model, free, within), key=lambda domain: domain.feature))
