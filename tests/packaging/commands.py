"""Commands away from the source tree, and environments of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
STATIC = "-static-libstdc++ -static-libgcc"  # what the linker is given for wheels, in pyproject.toml as well


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command away from the source tree and return what it said."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(sys.prefix),
        env={**inherited, "PATH": path, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def make_wheel(source: Path, *, to: Path, **environment: str) -> tuple[Path, str]:
    """Build a wheel from a folder or a source archive; return it, and what the build said."""
    options = ["--verbose", "--no-deps", "--no-build-isolation", "-w", to]
    said = run(sys.executable, "-m", "pip", "wheel", *options, source, **environment)
    [found] = to.glob("*.whl")
    return found, said.stdout + said.stderr


def make_environment(folder: Path, *requirements: str) -> Path:
    """Make an environment without pip that has what is required, without bytecode, and return its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", python]
    run(*pip, "install", "--quiet", "--no-compile", "--constraint", CONSTRAINTS, *requirements)
    return python
