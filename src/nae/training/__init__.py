"""Training: losses, the loop, the engine that takes its steps, the dial, and the history of a run."""

from nae.training.config import TrainingConfig
from nae.training.data import RowSource, TrainingRows
from nae.training.history import Epoch, History
from nae.training.loop import train
from nae.training.losses import LOSSES, Loss, make_loss

__all__ = ["LOSSES", "Epoch", "History", "Loss", "RowSource", "TrainingConfig", "TrainingRows", "make_loss", "train"]
