"""Put the native core into a wheel, compiled by the commands of ``src/nae/native/build.py``.

The core knows nothing of Python, so a wheel that has it is tagged ``py3-none-<platform>``. Where no compiler works, a
warning says so and the wheel is pure: what it installs predicts, explains, and trains with torch.
"""

import os
import platform
import sys
import sysconfig
import tempfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CoreHook(BuildHookInterface[Any]):
    """Compile the core into a folder of its own, from where the wheel takes it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the core to the wheel, and the platform to its name."""
        if version == "editable":  # `python -m nae.native.build` puts the core beside its sources
            return
        tag = _platform_tag()
        native = Path(self.root) / "src" / "nae" / "native"
        name = _load(native / "library.py").PATH.name
        self._folder = tempfile.TemporaryDirectory()
        made = Path(self._folder.name) / name
        if complaint := _load(native / "build.py").try_build(to=made):
            self.app.display_warning(f"{complaint} The package is installed without it, and a fit then takes torch.")
            return
        build_data["force_include"][str(made)] = f"nae/native/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"


def _load(path: Path) -> Any:
    """Load a module by its path: the package would import numpy, which a build does not have."""
    loader = SourceFileLoader(f"_nae_{path.stem}", str(path))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def _platform_tag() -> str:
    """Return what the core runs on; on macOS, this settles the oldest release, which the compiler reads, too."""
    if sys.platform == "darwin":
        oldest = os.environ.setdefault("MACOSX_DEPLOYMENT_TARGET", "11.0")
        return f"macosx_{oldest.replace('.', '_')}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
