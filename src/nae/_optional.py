"""Optional packages: imported where they are used, missed in one sentence."""

import importlib
from types import ModuleType

from nae.errors import MissingDependencyError

__all__ = ["require"]


def require(module: str, *, extra: str) -> ModuleType:
    """Import ``module``, or say which pip line brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"{package} is needed for this and cannot be imported ({error}); "
            f"pip install 'neural-additive-experts[{extra}]'"
        ) from error
