"""What every answer of a model needs: its tables, and the columns of the rows that it is asked about."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from nae.encoding.columns import Columns

if TYPE_CHECKING:
    from nae.tables.model import TableModel

__all__ = ["Asked"]


class Asked:
    """What can be asked: an estimator, or a saved model."""

    @abstractmethod
    def _explained_model(self) -> "TableModel":
        """Return the tables."""

    @abstractmethod
    def _explained_columns(self, X: Any) -> Columns:
        """Return the columns of a table in the model's order."""
