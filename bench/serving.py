"""The rows about a server over HTTP: fifty clients that search at once, and a search on the page."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import uvicorn

from client import mindex_command
from ground import Ground
from measure import Row, child_environment, told
from mindex.http_access.connections import TimedProtocol
from mindex.mcp.dialect import dialect_named
from mindex.mcp.http import Address, app, bind, parse_address
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory

_CLIENTS = 50
_LONG = 120.0
_MAX_WAIT = 10  # times the median
_MAX_PAGE = 1.3  # times the same `Memory.search`
_HITS = 10  # on a page


def http_clients(ground: Ground) -> Row:
    """50 clients × 20 searches on one server: no error, and none waits more than ten times the median."""
    searches = 20 if ground.sizes.questions > 20 else 2
    questions = ground.questions(3, 40)
    folder = ground.work / "served"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        path = Path(shutil.copy(ground.store(ground.sizes.small), folder / "memory.db"))
        with Memory(path) as memory:
            tokens = [memory.tokens.add(f"person{number}").secret for number in range(_CLIENTS)]
        with _server(path, ground.work) as url:
            waited, errors, seconds = asyncio.run(_all_at_once(url, tokens, questions, searches))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    longest = max(waited) / median(waited)
    return Row(
        name="http-clients",
        measured=f"{_CLIENTS} clients × {searches} searches over HTTP: the longest wait {told(max(waited))}",
        baseline=f"the median wait {told(median(waited))}",
        ratio=f"{longest:.1f}×",
        target=f"≤ {_MAX_WAIT}×, no error",
        ok=not errors and longest <= _MAX_WAIT,
        note=f"{errors} errors; {len(waited) / seconds:.0f} searches per second of {ground.sizes.small:,} records,"
        " clients and server on one machine",
        numbers={"ratio": longest, "errors": errors, "searches": len(waited), "per_second": len(waited) / seconds},
    )


def page_search(ground: Ground) -> Row:
    """A search on the page, over a socket, and the same `Memory.search` in the same process, in turn.

    Each question goes once to both, and each is first in turn. The second one has the query's vector from the cache, so
    both do in half of the cases.
    """
    path = ground.store(ground.sizes.large)
    questions = ground.questions(5, ground.sizes.questions)
    took: dict[str, list[float]] = {"page": [], "library": []}
    with _page_server(path) as (memory, client):
        memory.models.load()
        memory.search("the first search reads the vectors", limit=_HITS)
        client.get("/", params={"q": "the first page compiles the templates"})

        def ask(who: str, question: str) -> None:
            started = time.perf_counter()
            if who == "library":
                memory.search(question, limit=_HITS, logged=False)
            else:
                client.get("/", params={"q": question, "typing": "1"}).raise_for_status()
            took[who].append(time.perf_counter() - started)

        for number, question in enumerate(questions):
            for who in ("page", "library") if number % 2 else ("library", "page"):
                ask(who, question)
    page, library = median(took["page"]), median(took["library"])
    return Row(
        name="page-search",
        measured=f"a search on the page over HTTP, {ground.sizes.large:,} records: {told(page)}",
        baseline=f"`Memory.search` in the same process: {told(library)}",
        ratio=f"{page / library:.2f}×",
        target=f"≤ {_MAX_PAGE}×",
        ok=page / library <= _MAX_PAGE,
        note=f"median of {len(questions)} questions, {_HITS} hits each, without the frame of the page",
        numbers={"ratio": page / library, "page": page, "library": library},
    )


@contextmanager
def _page_server(path: Path) -> Iterator[tuple[Memory, httpx2.Client]]:
    """A server in a thread of this process: its memory, and a client that has the owner's token."""
    host = MemoryHost(ServerOptions(db=str(path)))
    server = MindexServer(host, dialect_named("native"))
    listening = bind(parse_address("0"))
    address = Address("127.0.0.1", listening.getsockname()[1])
    running = uvicorn.Server(uvicorn.Config(app(server, address), http=TimedProtocol, log_level="error"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    memory = host.whole_memory
    memory.tokens.owner_file()
    headers = {"Authorization": f"Bearer {memory.tokens.owner_token()}", "X-Fragment": "1"}
    try:
        with httpx2.Client(base_url=f"http://{address}", headers=headers, timeout=_LONG) as client:
            yield memory, client
    finally:
        running.should_exit = True
        thread.join(_LONG)
        host.close()


@contextmanager
def _server(path: Path, work: Path) -> Iterator[str]:
    command = mindex_command("--db", path, "serve", "--http", "0")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=child_environment(work)) as process:
        assert process.stderr is not None
        address = next(match[1] for line in process.stderr if (match := re.match(r"serving (http://\S+)", line)))
        try:
            yield address
        finally:
            process.terminate()


async def _all_at_once(
    url: str, tokens: list[str], questions: list[str], searches: int
) -> tuple[list[float], int, float]:
    """What each search waited, how many failed, and how long all of them took."""
    waited: list[float] = []
    errors = 0

    async def person(number: int) -> None:
        nonlocal errors
        headers = {"Authorization": f"Bearer {tokens[number]}", "Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=headers, timeout=_LONG) as client:
            for turn in range(searches):
                asked = time.perf_counter()
                answer = await client.post(url, json=_search(questions[(number + turn) % len(questions)]))
                waited.append(time.perf_counter() - asked)
                errors += answer.status_code != 200 or _result(answer.text).get("isError", True)

    async with httpx2.AsyncClient(timeout=_LONG) as first:  # the model is loaded before the clock runs
        headers = {"Authorization": f"Bearer {tokens[0]}", "Accept": "application/json, text/event-stream"}
        while "hybrid" not in (await first.post(url, json=_search(questions[0]), headers=headers)).text:
            await asyncio.sleep(0.2)
    started = time.perf_counter()
    await asyncio.gather(*map(person, range(len(tokens))))
    return waited, errors, time.perf_counter() - started


def _search(question: str) -> dict[str, Any]:
    params = {"name": "search", "arguments": {"query": question, "view": "digest"}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def _result(stream: str) -> dict[str, Any]:
    """The result in the event stream of an answer."""
    data = next((line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: {")), "{}")
    result = json.loads(data).get("result", {})
    return dict(result)
