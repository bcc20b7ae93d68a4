"""Read durations such as 90s."""

import re

from nae.errors import ConfigError

__all__ = ["read_duration"]


def read_duration(text: str) -> float:
    """Return the seconds of a duration such as ``90s``, ``60m`` or ``2h``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if found is None:
        raise ConfigError(f"A duration must be a number with s, m or h, such as 60m; got {text!r}.")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
