"""Which part of the library may import which, checked against the source without running it.

A part is a package or a module right under ``nae``. Imports inside functions count like any other. Imports for type
checkers are checked too, but draw no line in the graph, since nothing is loaded.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

Graph = Mapping[str, tuple[str, ...]]

# Parts that everyone may import. They import at most those before them.
BASE = ("errors", "_processes", "_files", "_typing", "_optional", "_words", "_warnings", "_printed", "_serial")
# What every other part imports besides: no more and no less.
GRAPH: Graph = {
    "links": (),
    "contributions": (),
    "recipes": (),
    "selection": (),
    "parameters": ("recipes",),
    "presets": ("recipes",),
    "datasets": (),
    "encoding": (),
    "tables": ("links", "contributions", "encoding"),
    "quality": ("links", "encoding", "tables"),
    "certificates": ("encoding", "tables"),
    "ranges": ("encoding", "tables", "certificates"),
    "explanation": ("encoding", "tables", "quality", "certificates", "ranges"),
    "decisions": ("links", "contributions", "encoding", "tables", "certificates", "ranges", "explanation"),
    "uncertainty": ("links", "encoding", "tables", "quality", "explanation"),
    "metrics": ("encoding", "tables", "explanation"),
    "monitoring": ("encoding", "tables", "quality", "explanation"),
    "card": ("encoding", "tables", "quality"),
    "plots": ("links", "quality", "explanation"),
    "interop": ("encoding", "tables", "explanation", "plots"),
    "export": ("encoding", "tables"),
    "report": ("encoding", "tables", "quality", "explanation"),
    "serving": ("encoding", "tables", "explanation", "uncertainty", "decisions", "monitoring", "card"),
    "native": (),
    "network": ("encoding", "tables"),
    "constraints": ("encoding", "network"),
    "scanning": ("links", "encoding", "quality"),
    "training": ("links", "parameters", "encoding", "tables", "network", "scanning"),
    "editing": ("encoding", "tables", "quality", "explanation", "training"),
    "engines": ("encoding", "native", "network", "training"),
    "estimators": (
        *("links", "contributions", "recipes", "parameters", "selection", "encoding", "tables", "quality"),
        *("explanation", "uncertainty", "metrics", "network", "constraints", "scanning", "training", "engines"),
    ),
    "tuning": ("recipes", "selection", "encoding", "plots", "estimators"),
    "scale": ("encoding", "tables", "explanation", "scanning", "training", "engines", "estimators", "tuning"),
    "cli": (
        *("recipes", "parameters", "datasets", "encoding", "tables", "quality", "explanation", "card", "export"),
        *(
            "report",
            "serving",
            "native",
            "scanning",
            "estimators",
            "tuning",
            "scale",
            "editing",
            "decisions",
            "uncertainty",
        ),
        *("monitoring",),
    ),
}
# Files whose methods only pass a call on to a higher part: a model explains itself, an explanation shows itself.
# Nothing else may import upwards.
FORWARDING = {
    "tables/answers/decides.py": "decisions",
    "tables/answers/explains.py": "explanation",
    "tables/answers/proves.py": "explanation",
    "tables/answers/reaches.py": "decisions",
    "tables/answers/doubts.py": "uncertainty",
    "tables/answers/watches.py": "monitoring",
    "explanation/interpret.py": "interop",
}
# What reads a model must not know how it was trained.
READERS = ("card", "plots", "interop", "export", "report", "serving")
TRAINERS = ("network", "training", "engines", "scanning", "estimators")
# Packages that only some parts, or some folders of a part, may import.
OWNERS = {
    "torch": ("engines/torch",),
    "sklearn": (*TRAINERS, "interop", "tuning", "scale", "cli"),
    "matplotlib": ("plots",),
    "plotly": ("plots", "interop", "report"),
    "pandas": (),
    "polars": (),
    "pickle": (),
    "cloudpickle": (),
    "joblib": (),
}


class When(StrEnum):
    """When an import happens."""

    loading = "while the module loads"
    calling = "when a function is called"
    never = "never: it is for type checkers"


@dataclass(frozen=True)
class Import:
    """One import: the part and file it stands in, and what it asks for."""

    part: str
    file: str
    line: int
    module: str
    when: When

    @property
    def target(self) -> str | None:
        """The part of the library that is imported, or None."""
        top, _, rest = self.module.partition(".")
        target = rest.partition(".")[0]
        return None if top != "nae" or target in ("", "__version__", self.part) else target


def imports(package: Path) -> list[Import]:
    """Return all imports of a package but those of its public surface, which knows every part."""
    paths = [path for path in sorted(package.rglob("*.py")) if path != package / "__init__.py"]
    return [one for path in paths for one in _imports(package, path)]


def edges(package: Path) -> set[tuple[str, str]]:
    """Return which part imports which when the library runs; without what everyone may import and what forwards."""
    return {
        (one.part, one.target)
        for one in imports(package)
        if one.target is not None
        and one.target not in BASE
        and one.when is not When.never
        and FORWARDING.get(one.file) != one.target
    }


def violations(package: Path) -> list[str]:
    """Return a complaint about every import under ``package`` that is not allowed."""
    return [complaint for one in imports(package) if (complaint := _complaint(one))]


def cycles(graph: Graph) -> list[set[str]]:
    """Return the groups of parts that reach each other."""
    reached = {part: reach(graph, part) for part in graph}
    groups = [{other for other in reached[part] if part in reached[other]} for part in graph]
    return [group for at, group in enumerate(groups) if group and group not in groups[:at]]


def reach(graph: Graph, part: str) -> set[str]:
    """Return every part that ``part`` imports, directly or through others."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        new = set(graph[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def _imports(package: Path, path: Path) -> Iterator[Import]:
    part = path.relative_to(package).with_suffix("").parts[0]
    file = path.relative_to(package).as_posix()
    for node, when in _import_nodes(ast.parse(path.read_text()), When.loading):
        if isinstance(node, ast.Import):
            modules: Iterable[str] = [alias.name for alias in node.names]
        elif node.module == package.name:  # from nae import metrics
            modules = [f"{package.name}.{alias.name}" for alias in node.names]
        else:
            modules = [node.module or "."]
        for module in modules:
            yield Import(part, file, node.lineno, module, when)


def _import_nodes(tree: ast.AST, when: When) -> Iterator[tuple[ast.Import | ast.ImportFrom, When]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, when
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _import_nodes(node, When.never)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _import_nodes(node, When.calling)
        else:
            yield from _import_nodes(node, when)


def _complaint(one: Import) -> str | None:
    where = f"nae/{one.file}:{one.line} ({one.part}) imports {one.module}"
    owners = OWNERS.get(one.module.partition(".")[0])
    if owners is not None and one.when is not When.never and not _stands_in(one, owners):
        return f"{where}, which only {list(owners)} may"
    if one.target is None:
        return None
    if one.part in BASE:
        is_before = one.target in BASE[: BASE.index(one.part)]
        return None if is_before else f"{where}; what everyone imports may import only what stands before it in BASE"
    if one.part not in GRAPH or one.target not in (*BASE, *GRAPH):
        return f"{where}; name both parts in GRAPH"
    if one.target in (*BASE, *GRAPH[one.part]) or _forwards(one):
        return None
    return f"{where}, which GRAPH does not allow"


def _stands_in(one: Import, owners: tuple[str, ...]) -> bool:
    """Return whether an import stands in one of some parts or folders."""
    return one.part in owners or any(one.file.startswith(f"{owner}/") for owner in owners)


def _forwards(one: Import) -> bool:
    """Return whether a file that forwards imports what it forwards to, where it is called or for its types."""
    return one.when is not When.loading and FORWARDING.get(one.file) == one.target
