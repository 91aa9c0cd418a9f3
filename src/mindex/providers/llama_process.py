"""The program that runs llama.cpp: one model, served on a loopback port until whoever started it is gone.

A process of its own, because llama.cpp ends its process when it meets a file or a request that it cannot stand, and
writes to whatever standard output it finds. It is run as a file, and so loads nothing else of mindex.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program in front; we end when it does
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    _end_quietly()
    asked = json.loads(sys.stdin.readline())
    try:
        server = _serve(asked)
        said = {"url": server.listening_address}
    except Exception as error:
        said = {"error": f"{error}"}
    answer.write(json.dumps(said) + "\n")
    answer.close()
    if "url" in said:
        sys.stdin.read()  # returns when the other end is closed, or its process has died
    os._exit(0)  # what llama.cpp tidies up at its end, the system does faster


def _end_quietly() -> None:
    """When llama.cpp aborts, it would call a debugger first, and leave its memory on the disk."""
    os.environ["GGML_NO_BACKTRACE"] = "1"
    try:
        import resource
    except ImportError:  # Windows leaves none
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _serve(asked: dict[str, Any]) -> Any:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = asked["model"]
    parameters.api_keys = [asked["key"]]
    parameters.cors_origins = "null"
    parameters.hostnames = ["127.0.0.1"]
    parameters.verbosity = -1
    parameters.ui = False
    parameters.offline = True
    parameters.warmup = True  # a model that cannot run at all is found out now
    parameters.n_parallel = 1
    parameters.n_ctx = asked["tokens"]
    parameters.cache_ram_mib = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = asked["threads"]
    if asked["mode"] != "chat":
        # A text is read in one go, or not at all.
        parameters.n_batch = parameters.n_ubatch = asked["tokens"]
        parameters.embedding = True
        parameters.pooling_type = xllamacpp.llama_pooling_type(asked["pooling"])
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()
