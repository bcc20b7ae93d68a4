"""Search for settings: a search space, trials with two objectives (loss and weighted additivity), and their results.

Importing this package loads neither Optuna nor Ray nor torch; :func:`~nae.tuning.study.tune` needs the extra ``tune``.
"""

from nae.tuning.space import DEFAULT_SPACE, Choice, Range, SearchSpace
from nae.tuning.study import STUDY_FILE, tune
from nae.tuning.trials import Trial, TuningResult

__all__ = ["DEFAULT_SPACE", "STUDY_FILE", "Choice", "Range", "SearchSpace", "Trial", "TuningResult", "tune"]
