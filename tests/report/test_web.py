"""The page's own sources: types, lint, unit tests, and whether the shipped assets were built from them."""

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")]


def npm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["npm", *words], cwd=WEB, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def packages() -> None:
    """Install what the sources are checked with; where the npm registry is out of reach there is nothing to run."""
    if not (WEB / "node_modules" / ".package-lock.json").exists():
        done = npm("install", "--no-audit", "--no-fund")
        if done.returncode:
            pytest.skip(f"npm install did not succeed: {done.stderr.strip().splitlines()[-1:]}")


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("script", ["check", "test"])
def test_the_sources_of_the_page_pass(script: str) -> None:
    done = npm("run", script)
    assert done.returncode == 0, done.stdout + done.stderr
