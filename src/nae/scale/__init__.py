"""More machines: one fit shared by the workers of a Ray cluster, and searches whose trials run side by side.

Needs the extra ``scale``.
"""

from nae.scale.cluster import connect
from nae.scale.fit import fit_ray
from nae.scale.search import tune_ray

__all__ = ["connect", "fit_ray", "tune_ray"]
