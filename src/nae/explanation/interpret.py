"""The methods that interpret's dashboard calls on an explanation; interpret is not imported."""

from typing import Any, ClassVar

__all__ = ["InterpretView"]


class InterpretView:
    """An explanation that ``interpret.show`` and ``interpret.preserve`` understand."""

    explanation_type: ClassVar[str]

    @property
    def selector(self) -> Any:
        """The table that interpret's dashboard selects from."""
        from nae.interop.interpret import selector_of

        return selector_of(self)

    def data(self, key: int | None = None) -> Any:
        """Return interpret's dictionary of one entry, of the overview (``None``), or of everything (``-1``)."""
        from nae.interop.interpret import data_of

        return data_of(self, key)

    def visualize(self, key: int | None = None) -> Any:
        """Return a plotly figure of one entry (a feature, or a row), or of the overview; None if there is none."""
        from nae.interop.interpret import figure_of

        return figure_of(self, key)
