"""How good a model is: one list of measures per loss, compared with a baseline that knows only the target.

``measure(model, X, y)`` takes fitted estimators and loaded models. ``score``, the command line, reports, cards and the
benchmarks all take their figures from this module.
"""

from nae.quality.baseline import Baseline, Criterion
from nae.quality.comparing import by_group
from nae.quality.curves import Reliability, reliability
from nae.quality.groups import Gap, Group, Groups, Rate
from nae.quality.measuring import (
    MOST_ROWS,
    OF_ANY_LOSS,
    Measure,
    Quality,
    explained,
    measure,
    measure_classes,
    measure_numbers,
    measure_rows,
)
from nae.quality.rows import MeasuredRows, check_offset, class_positions

__all__ = [
    "MOST_ROWS",
    "OF_ANY_LOSS",
    "Baseline",
    "Criterion",
    "Gap",
    "Group",
    "Groups",
    "Measure",
    "MeasuredRows",
    "Quality",
    "Rate",
    "Reliability",
    "by_group",
    "check_offset",
    "class_positions",
    "explained",
    "measure",
    "measure_classes",
    "measure_numbers",
    "measure_rows",
    "reliability",
]
