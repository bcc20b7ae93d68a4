"""Networks of the literature, in torch: each from its paper's description, small, behind one interface.

None of them comes from a package, since none of those on PyPI is maintained and fits. ``nodegam`` 0.3.0 of 2022 can be
made to train, and brings some twenty packages, loaders that need a NumPy before 1.24 and a log in the working folder;
``nam`` 0.0.3 of 2021 asks for a package that no longer builds, ``nam-pytorch`` 0.0.1 is a module without training.
``pytorch_tabular`` 1.2 has NODE, none of the additive ones, and asks for a pandas before 3; ``rtdl`` asks for a torch
before 2. ``dnamite`` is maintained and another model: it cuts values into cells. Neural basis models have no package.
Besides, these need nothing but torch and scikit-learn, so they run where there is a GPU and little else.
"""

from benchmarks.models.networks.additive import NAM, NBM
from benchmarks.models.networks.base import AdditiveNetwork, Network
from benchmarks.models.networks.dense import MLP
from benchmarks.models.networks.trees import NODE, NodeGAM

__all__ = ["NETWORKS", "AdditiveNetwork", "Network"]

NETWORKS: dict[str, type[Network]] = {"mlp": MLP, "nam": NAM, "nbm": NBM, "node": NODE, "node-gam": NodeGAM}
