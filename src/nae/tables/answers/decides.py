"""The methods that help to decide about somebody, and to explain the decision."""

from nae.tables.answers.asked import Asked

__all__ = ["Decides"]


class Decides(Asked):
    """Decisions, from the tables alone."""
