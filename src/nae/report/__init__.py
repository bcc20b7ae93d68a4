"""The living report: one HTML file that contains a model and lets a reader try it."""

from nae.report.write import write_report

__all__ = ["write_report"]
