"""A server on this machine that speaks the protocol of the Hugging Face hub, with its store of large files beside it.

As at the hub: the interface lists a repository, `resolve` describes a file by headers and redirects a large one to the
store, which is another origin and knows ranges. A test can have it break connections or serve wrong bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

_API, _STORE, _CACHE, _RESOLVE = "/api/models/", "/store/", "/api/resolve-cache/models/", "/resolve/"


@dataclass
class Repo:
    """One repository at one commit. Files of weights are large ones, kept by their SHA-256."""

    files: dict[str, bytes]
    licence: str = "mit"
    gated: bool = False
    branch: str = "main"

    @property
    def commit(self) -> str:
        content = repr([(name, hashlib.sha256(data).hexdigest()) for name, data in sorted(self.files.items())])
        return hashlib.sha1(content.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class HubRequest:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def range(self) -> str:
        return self.headers.get("range", "")


@dataclass
class HubServer:
    """The hub and its store. Use it in a `with`."""

    repos: dict[str, Repo] = field(default_factory=dict)
    token: str = ""  # that opens gated repositories
    breaks: list[int] = field(
        default_factory=list
    )  # after this number of bytes a download of the store breaks, once each
    holds: int = 0  # after this number of bytes a download of the store stops
    ranges: bool = True  # whether the store knows them
    checksums: bool = True  # whether files have an ETag
    says: bytes = b""  # what it says instead of a listing
    refuses: int = 0  # a status that every request is answered with
    spoils: set[str] = field(default_factory=set)  # files of which other bytes are served than were described
    received: list[HubRequest] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    _servers: list[ThreadingHTTPServer] = field(default_factory=list)

    def __enter__(self) -> HubServer:
        for handler in (_Hub, _Store):
            server = _Listening(("127.0.0.1", 0), handler)
            server.hub = self
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
            self._servers.append(server)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.stopped.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def address(self, number: int = 0) -> str:
        return f"http://127.0.0.1:{self._servers[number].server_address[1]}"

    def add(self, name: str, folder: Path, **options: object) -> Repo:
        """Add a repository with the files of a folder."""
        files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        self.repos[name] = Repo(files, **options)  # type: ignore[arg-type]  # as Repo has them
        return self.repos[name]

    def downloads(self) -> list[HubRequest]:
        return [request for request in self.received if request.method == "GET" and request.path.startswith(_STORE)]


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    hub: HubServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is gone is none of a test's concern."""


class _Handler(BaseHTTPRequestHandler):
    server: _Listening
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.hub.received.append(HubRequest(self.command, path, headers))
        if self.server.hub.refuses:
            return self.reply(self.server.hub.refuses)
        return self.answer(path)

    def answer(self, path: str) -> None:
        raise NotImplementedError

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Hub(_Handler):
    def answer(self, path: str) -> None:
        if path.startswith(_CACHE):
            return self._small_file(path.removeprefix(_CACHE))
        if path.startswith(_API):
            return self._listing(path.removeprefix(_API))
        return self._resolve(path)

    def _listing(self, rest: str) -> None:
        name, _, revision = rest.partition("/revision/")
        repo = self.server.hub.repos.get(name)
        if repo is None:  # the hub does not tell a missing one from a private one
            return self.reply(401, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
        if revision and revision not in (repo.branch, repo.commit):
            return self.reply(404, X_Error_Code="RevisionNotFound", X_Error_Message=f"Invalid rev id: {revision}")
        if self.server.hub.says:
            return self.reply(200, self.server.hub.says)
        siblings = [{"rfilename": name} for name in sorted(repo.files)]
        answer = {"id": name, "sha": repo.commit, "siblings": siblings, "cardData": {"license": repo.licence}}
        return self.reply(200, json.dumps(answer).encode(), Content_Type="application/json")

    def _resolve(self, path: str) -> None:
        name, _, rest = path[1:].partition(_RESOLVE)
        revision, _, file = rest.partition("/")
        hub, repo = self.server.hub, self.server.hub.repos[name]
        if repo.gated and self.headers.get("authorization") != f"Bearer {hub.token}":
            return self.reply(401, X_Error_Code="GatedRepo", X_Error_Message=f"Access to model {name} is restricted.")
        if revision != repo.commit:
            return self.reply(404, X_Error_Code="RevisionNotFound", X_Error_Message=f"Invalid rev id: {revision}")
        if file not in repo.files:
            return self.reply(404, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found")
        if not file.endswith((".onnx", "_data")):
            return self.reply(307, Location=f"{_CACHE}{name}/{revision}/{file}", X_Repo_Commit=repo.commit)
        data = repo.files[file]
        checksum = hashlib.sha256(data).hexdigest()
        described = {"X_Linked_ETag": f'"{checksum}"'} if hub.checksums else {}
        location = f"{hub.address(1)}{_STORE}{name}/{file}?signature=x"
        described |= {"X_Linked_Size": str(len(data)), "X_Repo_Commit": repo.commit, "Location": location}
        return self.reply(302, **described)

    def _small_file(self, rest: str) -> None:
        owner, name, _, file = rest.split("/", 3)
        repo = self.server.hub.repos[f"{owner}/{name}"]
        data = repo.files[file]
        etag = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
        headers = {"ETag": f'"{etag}"'} if self.server.hub.checksums else {}
        self.reply(200, data, X_Repo_Commit=repo.commit, **headers)


class _Store(_Handler):
    def answer(self, path: str) -> None:
        hub = self.server.hub
        owner, name, file = path.removeprefix(_STORE).split("/", 2)
        data = hub.repos[f"{owner}/{name}"].files[file]
        if file in hub.spoils:
            data = data[:-4] + b"evil"
        start = int(self.headers.get("range", "bytes=0-")[6:-1]) if hub.ranges else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", '"of-the-store"')
        self.end_headers()
        sent = data[start:]
        if hub.breaks:
            sent = sent[: hub.breaks.pop(0)]
            self.close_connection = True
        with contextlib.suppress(OSError):
            if hub.holds:
                self.wfile.write(sent[: hub.holds])
                hub.stopped.wait(60)
                self.close_connection = True
                return
            self.wfile.write(sent)
