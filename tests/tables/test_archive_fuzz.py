"""Damaged and forged files: each is refused, or is a model that works; none crashes."""

import warnings

import numpy as np
import pytest

from nae.errors import FormatError
from nae.tables import TableModel
from nae.tables.archive import parse_archive
from tests.golden.make_format_1 import FOLDER, ROWS
from tests.laws.assertions import assert_same_model
from tests.tables.mutations import Mutation, break_bytes, edit_arrays, edit_header

GOLDEN = (FOLDER / "format_1.nae").read_bytes()


def read(content: bytes) -> TableModel:
    return parse_archive(content)[0]


def check_forged(model: TableModel) -> None:
    """A forged file that loads is another model: it must predict numbers, and explain itself."""
    rows = {name: ROWS.get(name, [None] * 6) for name in model.feature_names}
    try:
        found = model.contributions(rows)
    except ValueError:  # texts in what is now a number
        found = model.contributions({name: [None] for name in model.feature_names})
    assert np.isfinite(found.score).all()
    assert np.all(found.lower <= found.upper)
    model.predict({name: [None] for name in model.feature_names})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow in statistics that were forged to be near the largest float
        model.explain_global()


def count_refused(mutation: Mutation, n: int, *, seed: int) -> int:
    """Try ``n`` mutations and return how many were refused; those that load must be whole."""
    random = np.random.default_rng(seed)
    original, refused = read(GOLDEN), 0
    for _ in range(n):
        content = mutation(GOLDEN, random)
        try:
            model = read(content)
        except FormatError:
            refused += 1
            continue
        if mutation is break_bytes:
            assert_same_model(model, original)
        else:
            check_forged(model)
    return refused


@pytest.mark.parametrize("mutation", [break_bytes, edit_header, edit_arrays])
def test_mutations_are_refused_or_harmless(mutation: Mutation) -> None:
    assert count_refused(mutation, 300, seed=0) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("mutation", [break_bytes, edit_header, edit_arrays])
def test_many_mutations_are_refused_or_harmless(mutation: Mutation, seed: int) -> None:
    assert count_refused(mutation, 1000, seed=seed) > 300  # 24,000 in all
