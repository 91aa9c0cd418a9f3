"""Rules of the code that no linter knows: reasons for imports inside functions, composition between packages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
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


def has_reason(lines: list[str], node: ast.stmt, ends: Mapping[int | None, ast.stmt]) -> bool:
    """A comment on the line, or directly above the block of imports. `ends`: imports by their last line."""
    if any("#" in line for line in lines[node.lineno - 1 : node.end_lineno]):
        return True
    if lines[node.lineno - 2].lstrip().startswith("#"):
        return True
    return node.lineno - 1 in ends and has_reason(lines, ends[node.lineno - 1], ends)


def imports_without_reason(text: str) -> list[int]:
    lines = text.splitlines()
    ends = {node.end_lineno: node for node in imports_inside_functions(ast.parse(text))}
    return sorted(node.lineno for node in ends.values() if not has_reason(lines, node, ends))


def test_an_import_inside_a_function_has_its_reason_on_the_line_or_directly_above() -> None:
    texts = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in MODULES}
    assert {name: missing for name, text in texts.items() if (missing := imports_without_reason(text))} == {}


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("    import b  # slow", []),
        ("    # slow\n    import b\n    from c import (\n        d,\n    )\n    import e", []),
        ("    import b", [3]),
        ("    # import: slow\n\n    import b", [5]),
        ("    # import: slow\n    x = 1\n    import b", [5]),
        ("    import b  # slow\n    x = 1\n    import c", [5]),
    ],
)
def test_a_comment_elsewhere_is_not_the_reason_for_an_import(code: str, missing: list[int]) -> None:
    assert imports_without_reason(f"# imports below are slow\ndef f():\n{code}\n") == missing


# The bases that the interface has for extensions.
FOR_EXTENSIONS = {"Importer", "Toolset"}


def package_of(module: str) -> str:
    top, _, rest = module.partition(".")
    return rest.partition(".")[0] or top if top == "mindex" else top


def test_no_class_inherits_behaviour_from_another_package() -> None:
    """Errors, protocols, typed dictionaries and classes of libraries may be bases; anything else is composed."""
    inherited = []
    for path in MODULES:
        tree, _ = parsed(path)
        own = package_of(".".join(path.relative_to(SOURCE).with_suffix("").parts))
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
                if own.startswith("mindex_") and name in FOR_EXTENSIONS:
                    continue
                if module and package_of(module) not in (own, "errors"):
                    inherited.append(f"{path.relative_to(SOURCE)}: {node.name}({name})")
    assert inherited == []


def test_tests_mirror_the_packages() -> None:
    extensions = {path.name for path in SOURCE.iterdir() if path.name.startswith("mindex_")}
    assert {path.name for path in (ROOT / "tests").iterdir() if path.name.startswith("mindex_")} == extensions


def test_extensions_import_at_most_thirty_modules_of_the_core_and_the_architecture_lists_them() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (contract,) = (
        one for one in contracts if "mindex_compat" in one.get("source_modules", ()) and "ignore_imports" in one
    )
    allowed = [one.removeprefix("** -> ") for one in contract["ignore_imports"]]
    allowed.remove("mindex")
    assert len(allowed) <= 30
    listed = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("may import of the core:\n\n")[2]
    assert re.findall(r"`([\w.]+)`", listed.partition("\n\n")[0]) == [one.removeprefix("mindex.") for one in allowed]
