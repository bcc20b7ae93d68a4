"""Searching for settings: a space, trials with two objectives (score and weighted additivity), and what came of them.

Importing this package loads neither Optuna nor Ray nor torch; :func:`~nae.tuning.study.tune` needs the extra ``tune``.
"""

from nae.tuning.space import DEFAULT_SPACE, Choice, Range, SearchSpace
from nae.tuning.study import STUDY_FILE, tune
from nae.tuning.trials import Trial, TuningResult

__all__ = ["DEFAULT_SPACE", "STUDY_FILE", "Choice", "Range", "SearchSpace", "Trial", "TuningResult", "tune"]
