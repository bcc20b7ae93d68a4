"""Networks of the literature, in torch: each from its paper's description, small, behind one interface.

Of the packages on PyPI none gives these models beside the versions used here: ``nodegam`` 0.3 asks for names that
NumPy has dropped, ``nam`` 0.0.3 for a package that no longer installs, ``rtdl`` for NumPy and torch before 2;
``dnamite`` is maintained, and is another model (cells instead of a network of the value); ``pytorch_tabular`` has NODE
and none of the additive ones. There is no package of neural basis models.
"""

from benchmarks.models.networks.additive import NAM, NBM
from benchmarks.models.networks.base import AdditiveNetwork, Network
from benchmarks.models.networks.dense import MLP
from benchmarks.models.networks.trees import NODE, NodeGAM

__all__ = ["NETWORKS", "AdditiveNetwork", "Network"]

NETWORKS: dict[str, type[Network]] = {"mlp": MLP, "nam": NAM, "nbm": NBM, "node": NODE, "node-gam": NodeGAM}
