"""A token for one collection: no error tells which other folders there are, or where the server works."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
import pytest

from tests.conftest import write
from tests.mcp.conftest import structured, text
from tests.mcp.team import LONG, Team, bearer, team_server

pytestmark = [pytest.mark.anyio, pytest.mark.server]

PLACES = (
    "payroll",
    "payroll/2026",
    "drafts",
    "nothing",
    "docs/sub",
    "../outside",
    "/etc",
    "/nothing",
    "~",
    "\0",
    "x" * 5_000,
)


@pytest.fixture(scope="module", params=["native", "memorizer"])
def team(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Folders that are indexed, only there, and missing."""
    root = tmp_path_factory.mktemp("team") / "server-root"
    write(
        root,
        dict.fromkeys(("docs/a.md", "docs/sub/b.md", "payroll/2026/p.md", "drafts/d.md"), "# Piers\n\nTwo piers."),
    )
    write(root.parent, {"outside/o.md": "text"})

    def prepare(memory: object) -> None:
        memory.index(root / "docs")  # type: ignore[attr-defined]
        memory.index(root / "payroll")  # type: ignore[attr-defined]

    with team_server(root, request.param, prepare=prepare) as team:
        yield team


@pytest.fixture
def anna(team: Team) -> Iterator[str]:
    yield team.token("anna", collections=["docs"])
    team.memory.tokens.revoke("anna")


def anonymous(message: str, place: str) -> str:
    return message.replace(place, "PLACE") if place else message


@pytest.mark.parametrize("team", ["native"], indirect=True)
async def test_every_other_folder_gets_the_same_error_whether_it_is_there_or_not(team: Team, anna: str) -> None:
    expected = "this token may index docs only; ask the server's owner to index other folders"
    async with team.client(anna) as client:
        for place in (*PLACES, str(team.host.options.root), str(team.memory.folder)):
            assert text(await client.call_tool("index", {"path": place})) == expected, place
            answer = httpx2.post(f"{team.url}/api/v1/index", json={"path": place}, headers=bearer(anna), timeout=LONG)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "denied")
            assert "; ".join(list(answer.json()["error"].values())[1:]) == expected
        for place in ("docs", str(team.memory.collections.list()[0].root), ""):
            indexed = structured(await client.call_tool("index", {"path": place}))["collections"]
            assert [one["name"] for one in indexed] == ["docs"]


@pytest.mark.parametrize("team", ["native"], indirect=True)
async def test_a_reference_to_another_folder_gets_the_same_answer_whether_it_is_there_or_not(
    team: Team, anna: str
) -> None:
    root = team.host.options.root
    async with team.client(anna) as client:
        for tool, name, places in (
            ("get", "ids", ("payroll/2026/p.md", "nothing/2026/p.md", "drafts/d.md", "nothing.md")),
            ("get", "ids", (f"{root}/payroll/2026/p.md", f"{root}/drafts/d.md", f"{root}/nothing.md", "/nothing.md")),
            ("search", "collections", ("payroll", "drafts", "nothing")),
        ):
            more = {"query": "piers"} if tool == "search" else {}
            calls = [(place, {name: [place], **more}) for place in places]
            shown = {anonymous(text(await client.call_tool(tool, given)), place) for place, given in calls}
            assert len(shown) == 1, shown


@pytest.mark.parametrize("team", ["native"], indirect=True)
def test_the_page_tells_no_more(team: Team, anna: str) -> None:
    """A form for a folder, the job of another token that runs, and the page of jobs."""
    with httpx2.Client(base_url=team.url, timeout=LONG, headers={"Origin": team.url, "Accept": "text/html"}) as browser:
        assert browser.post("/login", data={"token": anna}).status_code == 303
        csrf = re.findall(r'name="csrf" value="([^"]+)"', browser.get("/collections").text)[0]
        pages = {
            re.sub(r"\s+", " ", browser.post("/collections/index", data={"csrf": csrf, "path": place}).text)
            for place in ("payroll", "drafts", "nothing", "/etc", str(team.host.options.root))
        }
        assert len(pages) == 1
        assert "this token may index docs only" in pages.pop()
        _index_as_owner(team, "payroll")
        assert "payroll" not in browser.get("/job").text
        assert "payroll" not in browser.post("/collections/index", data={"csrf": csrf, "path": "docs"}).text


def _index_as_owner(team: Team, name: str) -> None:
    with httpx2.Client(base_url=team.url, timeout=LONG, headers={"Origin": team.url}) as browser:
        browser.post("/login", data={"token": team.owner()})
        csrf = re.findall(r'name="csrf" value="([^"]+)"', browser.get("/collections").text)[0]
        assert browser.post("/collections/index", data={"csrf": csrf, "path": name}).status_code == 303
        assert name in browser.get("/job").text


@pytest.mark.parametrize("team", ["memorizer"], indirect=True)
async def test_the_tools_of_memorizer_do_not_tell_which_folders_and_files_there_are(team: Team, anna: str) -> None:
    """Sources of projects, and imports, which take paths of any folder."""
    root = str(team.host.options.root)
    async with team.client(anna) as client:
        await client.call_tool("create_project", {"name": "Harbour"})
        (created,) = structured(await client.call_tool("list_projects", {}))["data"]["projects"]
        project = created["id"]
        rows = []
        for place in (f"{root}/payroll", f"{root}/nothing", "/etc", "/etc/passwd", "/nothing", "~/x"):
            call = {"project_id": project, "location": place}
            linked = structured(await client.call_tool("link_project_source", call))["data"]
            assert linked["location"] == place
            listed = await client.call_tool("list_project_sources", {"project_id": project})
            sources = structured(listed)["data"]["sources"]
            rows.append({key: value for key, value in sources[-1].items() if not key.endswith(("location", "_at"))})
        assert all(row == rows[0] for row in rows)
        shown = [
            anonymous(text(await client.call_tool("import_memory", {"file_path": place})), place)
            for place in ("../memory.db", "../nothing", "/etc/passwd", "/nothing", f"{root}/payroll/2026/p.md")
        ]
        assert len(set(shown)) == 1, shown
        assert "there is no file PLACE in the export folder" in shown[0]
