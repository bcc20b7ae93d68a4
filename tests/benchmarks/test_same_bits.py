from dataclasses import replace

from benchmarks.same_bits import Case, fingerprint

SMALL = Case("number", 60, params={"max_epochs": 2, "n_members": 2})


def test_a_fit_has_one_fingerprint() -> None:
    assert fingerprint(SMALL) == fingerprint(SMALL)


def test_another_seed_has_another_fingerprint() -> None:
    assert fingerprint(replace(SMALL, params=SMALL.params | {"random_state": 1})) != fingerprint(SMALL)
