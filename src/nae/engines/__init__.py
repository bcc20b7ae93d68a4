"""Engines: who takes the steps of a training, and on which device.

A further engine is a file with a class and a line of :data:`ENGINES`.
"""

from nae.engines.engines import ENGINES, make_engine
from nae.engines.place import Place, choose_place, estimate_work, halve_batch_until_it_fits

__all__ = ["ENGINES", "Place", "choose_place", "estimate_work", "halve_batch_until_it_fits", "make_engine"]
