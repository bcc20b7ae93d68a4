"""Results as files of JSON, one per subcommand. A trial in the file is not repeated unless it is asked for."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "Record"]

FOLDER = Path("benchmarks/results/guarantees")


@dataclass(frozen=True)
class Record:
    """The results of a subcommand, each under the name of its trial."""

    path: Path

    def read(self) -> dict[str, dict[str, Any]]:
        """Return all results."""
        found: dict[str, dict[str, Any]] = json.loads(self.path.read_text()) if self.path.exists() else {}
        return found

    def put(self, name: str, result: Any) -> None:
        """Add the result of a trial, a data class, in the place of an earlier one."""
        found = {**self.read(), name: asdict(result)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
