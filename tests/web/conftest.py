"""A server with a page over a small memory, on a real socket, and browsers without a screen: clients with cookies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mindex.memory import Memory
from tests.mcp.team import LONG, Team, team_server

DOCS = {
    "caching.md": "# Caching\n\nLookups are cached for fifteen minutes.\n\nSee [releases](releases.md).\n",
    "releases.md": "# Releases\n\n- A release is tagged on Tuesday.\n- A bad release is rolled back.\n",
}


def fill(memory: Memory) -> None:
    """Two files, three memories of which two are in conflict, a conversation, a contact, a project and a skill."""
    folder = memory.folder / "docs"
    folder.mkdir(exist_ok=True)
    for name, text in DOCS.items():
        (folder / name).write_text(text, encoding="utf-8")
    memory.index(folder)
    memory.add("The deployment window of Atlas opens at 14:00.", tags=["atlas"], type="fact")
    memory.add("The deployment window of Atlas opens at 16:00.", tags=["atlas"], type="fact")
    memory.add("Anna prefers tea in the morning.", type="preference")
    memory.conversations.add("When is the release?", "On Tuesday, after the tests.", session_id="s1")
    memory.conversations.add("Who tags it?", "Anna does.", session_id="s1")
    memory.contacts.add(name="Anna Berg", email="anna@example.org")
    memory.projects.add(name="Atlas")
    memory.skills.add(name="Weekly report", trigger_type="manual", instructions="Write the report.")
    memory.profile.set({"user.name": "Bea"})


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A server of the test's own, filled."""
    with team_server(tmp_path, prepare=fill) as team:
        yield team


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A filled server that tests must not change."""
    with team_server(tmp_path_factory.mktemp("shared"), prepare=fill) as team:
        yield team


_opened: list[httpx2.Client] = []


@pytest.fixture(autouse=True)
def closed_browsers() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


class Browser:
    """A client that keeps cookies, follows redirects and fills in forms as a browser does."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self.http = httpx2.Client(base_url=url, timeout=LONG, follow_redirects=True, headers={"accept": "text/html"})
        _opened.append(self.http)
        if token:
            self.http.post("/login", data={"token": token, "next": "/"})
            assert self.http.cookies, "the token was refused"

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.http.get(path, **options)

    def csrf(self, path: str = "/") -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)
        assert found, "the page has no form that changes something"
        return found[1]

    def send(self, path: str, /, *, page: str = "/", **fields: Any) -> httpx2.Response:
        """Send a form of a page, with the Origin that a browser would name."""
        data = {"csrf": self.csrf(page), **fields}
        return self.http.post(path, data=data, headers={"origin": self.url})


@pytest.fixture
def browser(team: Team) -> Browser:
    """The owner's browser."""
    return Browser(team.url, team.owner())


def id_of(team: Team, text: str) -> str:
    """The id of the entry with this text."""
    (found,) = (hit.record.id for hit in team.memory.search(text).hits if hit.record.text == text)
    return found
