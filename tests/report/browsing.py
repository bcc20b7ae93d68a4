"""A page in a real browser, and what it says and asks for."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Opened", "open_page", "start_browser"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# Chromium as root, without a screen, and without asking its maker for anything.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT = 20_000  # milliseconds


@contextmanager
def start_browser() -> Iterator[Any]:
    """Give a browser; skip the test that asks for one where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: the page was not opened")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@dataclass
class Opened:
    """A page that was opened, and what it said and asked for while it was."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def assert_quiet(self, path: Path) -> None:
        assert self.said == []
        assert self.asked == [path.as_uri()]


def open_page(browser: Any, path: Path, **context: Any) -> Opened:
    found = Opened(browser.new_context(locale="en-US", **context).new_page())
    found.page.set_default_timeout(WAIT)
    found.page.on("console", lambda message: found.said.append(message.text))
    found.page.on("pageerror", lambda error: found.said.append(str(error)))
    found.page.on("request", lambda request: found.asked.append(request.url))
    found.page.goto(path.as_uri())
    found.page.wait_for_selector("html[data-ready]")
    return found
