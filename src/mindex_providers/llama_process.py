"""The program that runs llama.cpp: one model, served on a loopback port until the process that started it is gone.

A separate process, because llama.cpp aborts its process over a file or a request that it cannot handle, and writes to
standard output. It is run as a file, and so imports nothing else of mindex.
"""

import json
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Read the settings from standard input, answer with the address or an error, and serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program in front; we end when it does
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    _abort_quietly()
    settings = json.loads(sys.stdin.readline())
    try:
        server = _serve(settings)
        answer = {"url": server.listening_address}
    except Exception as error:
        answer = {"error": f"{error}"}
    output.write(json.dumps(answer) + "\n")
    output.close()
    if "url" in answer:
        sys.stdin.read()  # returns when the other end is closed, or its process has died
    os._exit(0)  # what llama.cpp frees at its end, the system frees faster


def _abort_quietly() -> None:
    """Keep an abort of llama.cpp from calling a debugger first, and from leaving its memory on the disk."""
    os.environ["GGML_NO_BACKTRACE"] = "1"
    try:
        import resource  # Windows has none, and leaves no memory on the disk
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _serve(settings: dict[str, Any]) -> Any:
    import xllamacpp  # an optional dependency, which fails in words once the output is redirected

    parameters = xllamacpp.CommonParams()
    parameters.model.path = settings["model"]
    parameters.api_keys = [settings["key"]]
    parameters.cors_origins = "null"
    parameters.hostnames = ["127.0.0.1"]
    parameters.verbosity = -1
    parameters.ui = False
    parameters.offline = True
    parameters.warmup = True  # a model that cannot run at all fails now
    parameters.n_parallel = 1
    parameters.n_ctx = settings["tokens"]
    parameters.cache_ram_mib = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings["threads"]
    if settings["pooling"] is not None:
        # A text is read in one go, or not at all.
        parameters.n_batch = parameters.n_ubatch = settings["tokens"]
        parameters.embedding = True
        parameters.pooling_type = xllamacpp.llama_pooling_type(settings["pooling"])
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()
