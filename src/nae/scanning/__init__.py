"""Tables larger than memory: read in pieces, surveyed by sketches, kept on disk as small integers."""

from nae.scanning.scan import Scan, scan

__all__ = ["Scan", "scan"]
