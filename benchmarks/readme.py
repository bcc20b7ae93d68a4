"""Replace generated parts of the README. Each stands between two marks that name its benchmark."""

import re
from pathlib import Path

__all__ = ["README", "put"]

README = Path(__file__).resolve().parent.parent / "README.md"


def put(name: str, text: str, path: Path = README) -> None:
    """Replace the text between the marks of ``name``."""
    start, end = f"<!-- {name}: start -->", f"<!-- {name}: end -->"
    before = path.read_text()
    if start not in before or end not in before:
        raise ValueError(f"{path.name} must have {start} and {end}; they say where the text belongs.")
    block = f"{start}\n\n{text.strip()}\n\n{end}"
    path.write_text(re.sub(f"{start}.*{end}", lambda _: block, before, flags=re.DOTALL))
