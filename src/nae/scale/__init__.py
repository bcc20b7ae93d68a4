"""More machines: one fit whose rows or members are shared out over a Ray cluster, and searches with fits side by side.

Needs the extra ``scale``.
"""

from nae.scale.cluster import connect
from nae.scale.fit import fit_ray
from nae.scale.members import fit_members
from nae.scale.search import tune_ray

__all__ = ["connect", "fit_members", "fit_ray", "tune_ray"]
