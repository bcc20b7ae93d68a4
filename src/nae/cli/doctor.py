"""``nae doctor``: show versions and devices, and which extras are missing."""

import importlib.util
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from nae import __version__
from nae._optional import require
from nae.cli.console import make_table, out
from nae.cli.options import Json
from nae.native import best_instructions, reason

__all__ = ["doctor"]

_DISTRIBUTION = "neural-additive-experts"
_EXTRAS = ("train", "plots", "plotly", "cli", "serve", "export", "fast", "mlflow", "tune", "scale")


@dataclass(frozen=True)
class _Package:
    extra: str
    name: str
    version: str | None


def doctor(as_json: Json = False) -> None:
    """Show the installed versions, the devices, and which extras are missing."""
    packages = _packages()
    devices, core = _devices(), _native_core()
    missing = sorted({package.extra for package in packages if package.version is None})
    console = out()
    if as_json:
        content = {
            "nae": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "devices": devices,
            "native_core": core,
            "packages": [asdict(package) for package in packages],
            "missing_extras": missing,
        }
        console.print(json.dumps(content), soft_wrap=True)
        return
    console.print(f"nae {__version__} on Python {platform.python_version()} ({sys.executable})", soft_wrap=True)
    console.print(f"{platform.platform()}, {os.cpu_count()} cores; {', '.join(devices)}", soft_wrap=True)
    console.print(core, soft_wrap=True)
    table = make_table("Packages", "package", "version", "extra")
    for package in packages:
        table.add_row(package.name, package.version or "missing", package.extra)
    console.print(table)
    if missing:
        console.print(f"to install everything: pip install '{_DISTRIBUTION}[{','.join(missing)}]'", soft_wrap=True)
    else:
        console.print("all extras are installed.")


def _packages() -> list[_Package]:
    """Return the packages that the base and every extra require, each once."""
    found: dict[str, _Package] = {}
    try:
        lines = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:  # the source is run without an installation
        lines = []
    for line in lines:
        requirement, _, marker = line.partition(";")
        name = "".join(requirement.split("[")[0].partition(">")[0].partition("=")[0].split())
        extras = [extra for extra in _EXTRAS if f"extra == '{extra}'" in marker or f'extra == "{extra}"' in marker]
        if "extra ==" in marker and not extras:
            continue
        if name != _DISTRIBUTION:
            found.setdefault(name, _Package(extras[0] if extras else "base", name, _version(name)))
    return sorted(found.values(), key=lambda package: (package.extra != "base", package.extra, package.name))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _devices() -> list[str]:
    if importlib.util.find_spec("torch") is None:
        return ["no torch: models predict and explain, but cannot be trained"]
    torch = require("torch", extra="train")
    if not torch.cuda.is_available():
        return ["no CUDA device: training runs on the CPU"]
    return [f"CUDA: {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]


def _native_core() -> str:
    """Return a sentence that says whether the native core can be used, and if not, why."""
    return reason() or f"the native core is built and uses {best_instructions()} instructions"
