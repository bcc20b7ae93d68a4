"""Import optional packages where they are used, with one clear error if one is missing."""

import importlib
from types import ModuleType

from nae.errors import MissingDependencyError

__all__ = ["require"]


def require(module: str, *, extra: str | None = None) -> ModuleType:
    """Import ``module``. If it is missing, name the pip line of the extra, or of the package if no extra has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"{package} is needed for this and cannot be imported ({error}); pip install "
            + (package if extra is None else f"'neural-additive-experts[{extra}]'")
        ) from error
