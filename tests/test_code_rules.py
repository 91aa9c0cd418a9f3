"""Rules of the code that no linter knows: reasons for imports inside functions, composition between packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "mindex"
MODULES = sorted(SOURCE.rglob("*.py"))


def parsed(path: Path) -> tuple[ast.Module, list[str]]:
    text = path.read_text(encoding="utf-8")
    return ast.parse(text), text.splitlines()


def imports_inside_functions(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield node


def has_reason(lines: list[str], node: ast.stmt) -> bool:
    """A comment on the line, directly above the block of imports, or one above that says `import` for what follows."""
    if any("#" in line for line in lines[node.lineno - 1 : node.end_lineno]):
        return True
    above = node.lineno - 2
    while above >= 0 and lines[above].lstrip().startswith(("from ", "import ")):
        above -= 1
    if lines[above].lstrip().startswith("#"):
        return True
    earlier = lines[: node.lineno - 1]
    explained = any(line.lstrip().startswith("#") and "import" in line.lower() for line in earlier)
    return explained or "import" in (ast.get_docstring(ast.parse("\n".join(lines))) or "").lower()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_an_import_inside_a_function_has_its_reason_beside_it(path: Path) -> None:
    tree, lines = parsed(path)
    missing = [node.lineno for node in imports_inside_functions(tree) if not has_reason(lines, node)]
    assert missing == []


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_no_class_inherits_behaviour_from_another_package() -> None:
    """Errors, protocols, typed dictionaries and classes of libraries may be bases; anything else is composed."""
    inherited = []
    for path in MODULES:
        tree, _ = parsed(path)
        own = package_of(f"mindex.{'.'.join(path.relative_to(SOURCE).with_suffix('').parts)}")
        origin = {
            alias.asname or alias.name: node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mindex")
            for alias in node.names
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            for base in node.bases:
                name = base.id if isinstance(base, ast.Name) else ""
                module = origin.get(name, "")
                if module and package_of(module) not in (own, "errors"):
                    inherited.append(f"{path.relative_to(SOURCE)}: {node.name}({name})")
    assert inherited == []
