"""Fit on several machines: distribute the rows or members of a fit, or the fits of a search, over a Ray cluster.

This package needs the extra ``scale``.
"""

from nae.scale.cluster import connect
from nae.scale.fit import fit_ray
from nae.scale.members import fit_members
from nae.scale.search import tune_ray

__all__ = ["connect", "fit_members", "fit_ray", "tune_ray"]
