"""A language model: a program that reads a prompt on stdin, such as `generation.model = "my-model --quiet"`."""

import shlex
import shutil
import subprocess

from mindex.extension import GenerationError, Generator, Prompt, ProviderSettings

MINDEX_INTERFACE = 1


class Program:
    def __init__(self, settings: ProviderSettings) -> None:
        self.name = f"program/{settings.model}"
        self._command = shlex.split(settings.model)
        self._timeout = settings.timeout

    def check(self) -> None:
        if not self._command or shutil.which(self._command[0]) is None:
            raise GenerationError(f"there is no program '{self.name}'", "set generation.model to a command")

    load = check

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        self.check()
        text = f"{prompt.system}\n\n{prompt.user}"
        try:
            ran = subprocess.run(
                self._command, input=text, capture_output=True, text=True, timeout=seconds or self._timeout
            )
        except subprocess.TimeoutExpired:
            raise GenerationError(f"{self.name} took too long", "raise generation.timeout") from None
        return ran.stdout


def create(settings: ProviderSettings) -> Generator:
    return Program(settings)
