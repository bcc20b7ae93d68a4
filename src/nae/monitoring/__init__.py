"""Whether new rows still look like the training rows: drift of values, contributions and score, without labels."""

from nae.monitoring.checks import Check
from nae.monitoring.judging import LEVEL, LIMIT, judge, measure_drift
from nae.monitoring.reference import can_compare
from nae.monitoring.results import Drift, FeatureDrift
from nae.monitoring.tally import Tally

__all__ = ["LEVEL", "LIMIT", "Check", "Drift", "FeatureDrift", "Tally", "can_compare", "judge", "measure_drift"]
