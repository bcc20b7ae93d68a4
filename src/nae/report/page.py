"""The HTML around the content: one script, one style sheet, and a policy that forbids everything else."""

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

__all__ = ["build_page"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="neural-additive-experts {library}">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript><p>This report computes everything in the page, so it needs JavaScript. It connects to nothing.</p></noscript>
<div id="report"></div>
<script type="application/json" id="content">{content}</script>
<script>{script}</script>
</body>
</html>
"""


def build_page(content: dict[str, Any]) -> str:
    """Return the page as ASCII. Names and categories are inserted as data, never as code."""
    script, style = _asset("report.js"), _asset("report.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return _PAGE.format(
        policy=policy,
        library=html.escape(str(content["library"])),
        title=html.escape(content["title"]).encode("ascii", "xmlcharrefreplace").decode("ascii"),
        style=style,
        content=_as_json(content),
        script=script,
    )


def _as_json(content: dict[str, Any]) -> str:
    """Return JSON that cannot close the HTML element around it."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("nae.report").joinpath("assets", name).read_text(encoding="ascii")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("ascii")).digest()).decode("ascii")
