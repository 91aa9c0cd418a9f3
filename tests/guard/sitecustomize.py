"""Makes it an error to open a model in a test that is not marked `model`, or a server in one not marked `server`.

Python imports a module of this name when it starts: with this folder in PYTHONPATH the rule also holds in the
processes that a test starts. conftest imports it for the process that runs the tests.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

FORBIDDEN = "TESTS_FORBIDDEN"  # the markers that the running test does not have, separated by spaces
REPORT = "TESTS_FORBIDDEN_REPORT"  # the file that takes down what was opened all the same

# What opens a model in the packages that run models.
_OPENERS = {"onnxruntime": "InferenceSession", "xllamacpp": "Server"}


class NotMarked(BaseException):
    """A test opened what it is not marked for. No Exception: mindex goes on without a model that fails."""


def check(marker: str, opener: str) -> None:
    """Raise NotMarked when the running test does not have the marker that this opener needs.

    Raises RuntimeError in a thread: mindex waits for its threads, which handle every Exception.
    """
    if marker in os.environ.get(FORBIDDEN, "").split():
        import threading

        with open(os.environ[REPORT], "a", encoding="utf-8") as report:  # noqa: PTH123 - each process would pay for pathlib
            report.write(f"{marker} {opener}\n")
        in_main_thread = threading.current_thread() is threading.main_thread()
        error = NotMarked if in_main_thread else RuntimeError
        raise error(f"{opener} was called in a test that is not marked `{marker}`")


def opened() -> str:
    """Returns what the running test opened without being marked for it, as a sentence; "" when there is nothing."""
    try:
        with open(os.environ.get(REPORT, ""), encoding="utf-8") as report:  # noqa: PTH123 - likewise
            marker, opener = report.readline().split()
    except FileNotFoundError:
        return ""
    return f"{opener} opened a {marker}: mark the test with @pytest.mark.{marker}"


class _Finder:
    """Finds the packages that run models as Python does, and puts the check in front of what opens a model."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _OPENERS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _check_first(module)

            loader.exec_module = exec_module
        return spec


def _check_first(module: ModuleType) -> None:
    name = _OPENERS[module.__name__]
    opener = getattr(module, name)

    def checked(*arguments: Any, **named: Any) -> Any:
        check("model", f"{module.__name__}.{name}")
        return opener(*arguments, **named)

    setattr(module, name, checked)


if not any(getattr(finder, "__name__", "") == _Finder.__name__ for finder in sys.meta_path):
    sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]  # all that is asked of a finder is `find_spec`
