"""The native core as an engine."""

from nae.engines.native.engine import NativeEngine
from nae.engines.native.inputs import why_not

__all__ = ["NativeEngine", "why_not"]
