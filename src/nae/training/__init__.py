"""Training: losses, the loop, what it asks of an engine, the dial, and the history of a run."""

from nae.training.config import TrainingConfig
from nae.training.data import RowSource, TrainingRows
from nae.training.engine import Engine, Job
from nae.training.history import Epoch, History
from nae.training.loop import train
from nae.training.losses import LOSSES, Loss, make_loss

__all__ = [
    "LOSSES",
    "Engine",
    "Epoch",
    "History",
    "Job",
    "Loss",
    "RowSource",
    "TrainingConfig",
    "TrainingRows",
    "make_loss",
    "train",
]
