"""``nae doctor``: show versions and engines, and which extras are missing."""

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from nae import __version__
from nae.cli.console import make_table, out
from nae.cli.engines import engine_facts
from nae.cli.options import Json

__all__ = ["doctor"]

_DISTRIBUTION = "neural-additive-experts"
_EXTRAS = ("train", "gpu", "plots", "plotly", "cli", "serve", "excel", "export", "fast", "mlflow", "tune", "scale")


@dataclass(frozen=True)
class _Package:
    extra: str
    name: str
    version: str | None


def doctor(as_json: Json = False) -> None:
    """Show the installed versions, what trains on this machine, and which extras are missing."""
    packages = _packages()
    engines = asdict(engine_facts())
    missing = sorted({package.extra for package in packages if package.version is None})
    console = out()
    if as_json:
        content = {
            "nae": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "engines": engines,
            "packages": [asdict(package) for package in packages],
            "missing_extras": missing,
        }
        console.print(json.dumps(content), soft_wrap=True)
        return
    console.print(f"nae {__version__} on Python {platform.python_version()} ({sys.executable})", soft_wrap=True)
    console.print(f"{platform.platform()}, {os.cpu_count()} cores", soft_wrap=True)
    for sentence in engines.values():
        console.print(sentence, soft_wrap=True, markup=False)
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
