"""The native core: training steps and validation on a CPU, in C++ behind a plain C interface.

The sources are in ``cpp``; ``python -m nae.native.build`` compiles them into a shared object beside this file. Nothing
here knows of torch: arrays go in and come out.
"""

from nae.native.core import BLOCKS, GATES, LOSSES, ROUTINGS, Core, Forms, Inputs, Shape, Table, Tensor, Values
from nae.native.library import INSTRUCTIONS, best_instructions, is_here, reason

__all__ = [
    "BLOCKS",
    "GATES",
    "INSTRUCTIONS",
    "LOSSES",
    "ROUTINGS",
    "Core",
    "Forms",
    "Inputs",
    "Shape",
    "Table",
    "Tensor",
    "Values",
    "best_instructions",
    "is_here",
    "reason",
]
