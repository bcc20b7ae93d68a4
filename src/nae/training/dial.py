"""The dial: a user asks for additivity, and a controller finds the strength of the penalty that leads to it.

For each feature, the penalty is the share of its contribution's variance that context causes. In each step, the
logarithm of the penalty's weight moves by the difference between the target and the running additivity. The weight is
never below a least one: if the data are more additive than the target, that is all it costs. Engines take the steps;
this is the state that they begin with, and that checkpoints hold.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nae._typing import AnyArray
from nae.network import NetworkConfig
from nae.training.config import TrainingConfig

__all__ = ["LOG_MOST", "SHARE", "SPEED", "DialState", "make_dial"]

SPEED = 0.05  # of the controller, per step
SHARE = 0.05  # of a step in the running additivity
LOG_MOST = 4.0
_LOG_LEAST = -9.0


@dataclass
class DialState:
    """What is asked for, and where the controller stands."""

    target: float
    log_least: float
    log_gamma: float
    """The logarithm of the penalty's weight."""
    running: float = 0.5
    """The running additivity."""

    @property
    def strength(self) -> float:
        """The weight of the penalty as it is now."""
        return math.exp(self.log_gamma)

    def arrays(self) -> dict[str, AnyArray]:
        """Return what changes, by name."""
        return {"log_gamma": np.array(self.log_gamma), "running": np.array(self.running)}

    def load(self, arrays: Mapping[str, AnyArray]) -> None:
        """Put what changes back."""
        self.log_gamma, self.running = float(arrays["log_gamma"]), float(arrays["running"])


def make_dial(network: NetworkConfig, config: TrainingConfig) -> DialState | None:
    """Return the dial that a training asks for; a single expert per feature is additive anyway and needs none."""
    if config.additivity is None or network.n_experts == 1:
        return None
    least = config.context_penalty
    return DialState(
        config.additivity,
        log_least=max(_LOG_LEAST, math.log(least)) if least > 0 else _LOG_LEAST,
        log_gamma=math.log(config.initial_penalty),
    )
