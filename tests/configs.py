"""Configurations for tests: those of a fit that a user gets, with changes."""

from dataclasses import replace
from typing import Any

from nae.estimators.settings import Settings, resolve
from nae.network import NetworkConfig
from nae.parameters import Parameters
from nae.training import TrainingConfig

__all__ = ["network_config", "training_config"]


def network_config(*, encoder: Any = "piecewise", **changes: Any) -> NetworkConfig:
    """Return the network of one member that a regressor trains, with changes."""
    return replace(_settings(encoder).network, **changes)


def training_config(*, encoder: Any = "piecewise", **changes: Any) -> TrainingConfig:
    """Return how a regressor of one member trains, with changes."""
    return replace(_settings(encoder).training, **changes)


def _settings(encoder: Any) -> Settings:
    return resolve(Parameters(encoder=encoder, n_members=1), n_rows=2000, n_features=4)
