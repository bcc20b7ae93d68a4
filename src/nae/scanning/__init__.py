"""Read tables larger than memory in pieces, survey them with sketches, and cache them on disk as small integers."""

from nae.scanning.scan import Scan, scan

__all__ = ["Scan", "scan"]
