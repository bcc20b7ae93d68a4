"""Networks of the literature in torch: short implementations of the papers' descriptions, behind one interface.

They are not taken from packages, because no package on PyPI is both maintained and suitable. ``nodegam`` 0.3.0 (2022)
can be made to train, but requires about twenty packages, has loaders that need NumPy before 1.24, and writes a log to
the working folder. ``nam`` 0.0.3 (2021) requires a package that no longer builds. ``nam-pytorch`` 0.0.1 is a module
without training. ``pytorch_tabular`` 1.2 has NODE but no additive model, and requires pandas before 3. ``rtdl``
requires torch before 2. ``dnamite`` is maintained, but is a different model that cuts values into cells. Neural basis
models have no package. The implementations here need only torch and scikit-learn, so they run on a GPU machine with few
packages.
"""

from benchmarks.models.networks.additive import NAM, NBM
from benchmarks.models.networks.base import AdditiveNetwork, Network
from benchmarks.models.networks.dense import MLP
from benchmarks.models.networks.trees import NODE, NodeGAM

__all__ = ["NETWORKS", "AdditiveNetwork", "Network"]

NETWORKS: dict[str, type[Network]] = {"mlp": MLP, "nam": NAM, "nbm": NBM, "node": NODE, "node-gam": NodeGAM}
