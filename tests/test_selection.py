"""Which of several models is taken."""

from math import nan

from nae.selection import most_additive


def test_the_most_additive_model_within_one_standard_error_is_taken() -> None:
    assert most_additive([1.00, 0.95, 1.04, 1.06], [0.1] * 4, [0.4, 0.7, 0.9, 0.99]) == 2


def test_the_standard_error_of_the_best_counts_not_that_of_the_others() -> None:
    assert most_additive([1.0, 1.05], [0.01, 9.0], [0.4, 0.9]) == 0


def test_models_that_were_never_validated_are_not_taken() -> None:
    assert most_additive([nan, 1.0, nan], [nan, 0.1, nan], [0.4, 0.7, 0.9]) == 1
    assert most_additive([nan], [nan], [0.4]) == 0


def test_of_two_that_are_as_additive_the_better_one_is_taken() -> None:
    assert most_additive([1.0, 0.99], [0.1, 0.1], [0.9, 0.9]) == 1


def test_the_best_is_taken_if_its_standard_error_is_not_known() -> None:
    assert most_additive([1.0, 0.9], [0.1, nan], [0.9, 0.4]) == 1
