"""The model after training: numpy tables, and everything that is computed from them."""

from nae.tables.archive import load, save
from nae.tables.clamps import Clamps
from nae.tables.gates import GateTables
from nae.tables.model import TableModel
from nae.tables.routing import ROUTINGS, EqualRouting, Routing, SoftmaxRouting
from nae.tables.statistics import Statistics
from nae.tables.summary import TrainingSummary

__all__ = [
    "ROUTINGS",
    "Clamps",
    "EqualRouting",
    "GateTables",
    "Routing",
    "SoftmaxRouting",
    "Statistics",
    "TableModel",
    "TrainingSummary",
    "load",
    "save",
]
