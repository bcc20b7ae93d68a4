"""The graph of imports as a Mermaid diagram in docs/architecture.md: ``python -m tests.architecture.draw``."""

from pathlib import Path

from tests.architecture.layers import BASE, FORWARDING, GRAPH, Graph, reach

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
BEGIN, END = "<!-- begin of the graph -->", "<!-- end of the graph -->"
GROUPS = {
    "What an answer is made of": (
        "encoding",
        "links",
        "contributions",
        "recipes",
        "parameters",
        "selection",
        "presets",
        "datasets",
    ),
    "The model": (
        "tables",
        "quality",
        "certificates",
        "ranges",
        "explanation",
        "decisions",
        "uncertainty",
        "metrics",
        "monitoring",
        "card",
    ),
    "Learning": (
        "native",
        "network",
        "constraints",
        "scanning",
        "training",
        "engines",
        "estimators",
        "tuning",
        "scale",
    ),
    "Showing and handing on": ("editing", "plots", "interop", "export", "report", "serving"),
    "The command line": ("cli",),
}


def draw(graph: Graph) -> str:
    """Return the diagram: an arrow from every part to those it imports, without arrows that follow from others."""
    lines = ["```mermaid", "flowchart BT"]
    for number, (title, parts) in enumerate(GROUPS.items()):
        lines += [f'    subgraph group{number} ["{title}"]', *(f"        {part}" for part in parts), "    end"]
    lines += [f"    {part} --> {target}" for part in graph for target in needed(graph, part)]
    forwarding = {(file.split("/")[0], target) for file, target in FORWARDING.items()}
    lines += [f"    {part} -.-> {target}" for part, target in sorted(forwarding)]
    everyone = ", ".join(f"`{name}`" for name in BASE)
    return "\n".join([*lines, "```", "", f"Every part may import {everyone}; these are not drawn."])


def needed(graph: Graph, part: str) -> list[str]:
    """Return what ``part`` imports, without the parts that these import in their turn."""
    return [one for one in graph[part] if not any(one in reach(graph, other) for other in graph[part])]


def with_graph(page: str) -> str:
    """Return the page with the graph as it is now."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{draw(GRAPH)}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_graph(PAGE.read_text()))
