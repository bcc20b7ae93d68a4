"""Optional packages: imported where they are used, missed in one sentence."""

import importlib
from types import ModuleType

from nae.errors import MissingDependencyError

__all__ = ["require"]


def require(module: str, *, extra: str | None = None) -> ModuleType:
    """Import ``module``, or say which pip line brings it: that of an extra, or of the package where none has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"{package} is needed for this and cannot be imported ({error}); pip install "
            + (package if extra is None else f"'neural-additive-experts[{extra}]'")
        ) from error
