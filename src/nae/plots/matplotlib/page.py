"""The figure of several panels."""

from matplotlib import get_backend
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

__all__ = ["Page"]


class Page(Figure):
    """A figure that a notebook shows only once, even if it is the value of a cell."""

    def _ipython_display_(self) -> None:
        """Close the figure before it is shown; otherwise a notebook would show it again at the end of the cell."""
        if "inline" in get_backend():
            plt.close(self)
        raise NotImplementedError  # shown as any figure
