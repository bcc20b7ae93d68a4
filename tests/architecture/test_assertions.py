"""Every helper of the tests that asserts something has a test in which it fails."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def helpers(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield the names of functions that assert, and whether they are methods."""
    for node in tree.body:
        parts: Sequence[ast.AST] = node.body if isinstance(node, ast.ClassDef) else [node]
        for part in parts:
            if isinstance(part, ast.FunctionDef) and part.name.startswith("assert_"):
                yield part.name, part is not node


def failing(tree: ast.Module) -> set[str]:
    """Return the names of functions that are called where an AssertionError is expected."""
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and any("raises(AssertionError" in ast.unparse(item.context_expr) for item in node.items)
    ]
    calls = [node.func for block in blocks for node in ast.walk(block) if isinstance(node, ast.Call)]
    return {name for one in calls if (name := getattr(one, "attr", None) or getattr(one, "id", None))}


def imported(tree: ast.Module, module: str) -> set[str]:
    """Return the names that are imported from a module."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == module]
    return {alias.name for node in found for alias in node.names}


def without_a_failing_test(files: dict[str, str]) -> list[str]:
    """Return the helpers that no test shows failing: in their own file, or in one that imports them."""
    trees = {name: ast.parse(text) for name, text in files.items()}
    shown = {name: failing(tree) for name, tree in trees.items() if "raises(AssertionError" in files[name]}
    missing = []
    for name, tree in trees.items():
        module = name.removesuffix(".py").replace("/", ".")
        for helper, is_method in helpers(tree):
            users = [path for path in shown if helper in shown[path]]
            if not any(path == name or is_method or helper in imported(trees[path], module) for path in users):
                missing.append(f"{name}: {helper}")
    return missing


def test_every_helper_that_asserts_is_shown_failing() -> None:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    assert without_a_failing_test({path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}) == []


def test_a_helper_that_never_fails_is_found() -> None:
    helper = "def assert_even(n):\n    assert n % 2 == 0\n"
    shown = "from tests.a import assert_even\nwith pytest.raises(AssertionError):\n    assert_even(1)\n"
    namesake = shown.replace("tests.a", "tests.other")
    assert without_a_failing_test({"tests/a.py": helper}) == ["tests/a.py: assert_even"]
    assert without_a_failing_test({"tests/a.py": helper, "tests/b.py": namesake}) == ["tests/a.py: assert_even"]
    assert without_a_failing_test({"tests/a.py": helper, "tests/b.py": shown}) == []
