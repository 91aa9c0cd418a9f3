"""Two people, two logins, one database with row-level security: neither sees, finds, counts or changes the other's."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from mindex.clock import now_ms
from mindex.datatypes import Filters, Record, RecordVectors
from mindex.errors import MindexError, NotFoundError, SchemaError, StoreError, UsageError
from mindex.memory import Memory
from mindex.store.base import Access
from mindex.store.open import open_store
from mindex_postgres import administration, migrations
from mindex_postgres.administration import Administration
from mindex_postgres.row_security import RIGHTS, group_roles
from tests.contract.records import MODEL, axis, nearest
from tests.postgres_server import PostgresServer
from tests.running import Ran, run_here

pytestmark = pytest.mark.server

LOGINS = ("boss", "ann", "bob", "carl")
# Words that only Ann's records hold, and names of hers.
SECRETS = ("zanzibar", "quagga", "annfiles", "ann@example")
OPTIONS = {"embedding.provider": "none"}
DAY = 86_400_000
WHEN = 1_760_000_000_000


@dataclass(frozen=True)
class Team:
    """A schema, and the URL by which each login reaches it."""

    server: PostgresServer
    schema: str
    database: str = "postgres"

    def url(self, login: str) -> str:
        return self.server.url(user=login, database=self.database, schema=self.schema)

    @contextmanager
    def memory(self, login: str, agent: str = "") -> Iterator[Memory]:
        with Memory(self.url(login), agent=agent or login, options=OPTIONS) as memory:
            yield memory

    def administration(self, login: str) -> Administration:
        return Administration(self.url(login))

    def run(self, login: str, *arguments: object) -> Ran:
        return run_here("--db", self.url(login), "--agent", login, *arguments)


@contextmanager
def team_of(server: PostgresServer, schema: str) -> Iterator[Team]:
    """A schema that was set up, of which `boss` is an owner."""
    team = Team(server, schema)
    team.administration("postgres").init(["boss"], run=True)
    yield team
    roles = ", ".join(f"postgres_{schema}_{purpose}" for purpose in ("owner", "writer", "reader"))
    server.run(f"DROP OWNED BY {roles} CASCADE", f"DROP ROLE {roles}")


@pytest.fixture(scope="module")
def logins(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    postgres_server.run(*(f"CREATE ROLE {login} LOGIN" for login in LOGINS))
    yield postgres_server
    postgres_server.run(*(f"DROP ROLE {login}" for login in LOGINS))


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")


def records_of(login: str, word: str, other: str) -> list[Record]:
    def record(number: int, kind: str, text: str, **more: Any) -> Record:
        at = WHEN + number * DAY
        return Record(
            f"{login}{number:09}", kind, text, agent=login, created_at=at, updated_at=at, summary=text, **more
        )

    return [
        record(1, "memory", f"the {word} lives in the {other}", type="fact", tags=(word, "shared"), importance=7),
        record(2, "memory", f"the {word} costs 12 coins", type="decision", entities=(word,)),
        record(3, "turn", f"we talked about the {word} and the {other}", fields={"session_id": "s1"}),
        record(4, "profile", f"name {word}", fields={"profile": {"name": word}}),
        record(5, "contact", f"{word} {login}@example", title=word, fields={"email": f"{login}@example"}),
        record(6, "skill", f"feed the {word}", title=word, fields={"schedule": "daily"}),
    ]


def fill(team: Team, login: str, word: str, other: str, folder: Path) -> None:
    """What one person stores: entries, a change, a forgotten one, vectors, a link, a logged query, files."""
    with team.memory(login) as memory:
        store = memory.store
        records = records_of(login, word, other)
        store.entries.add(records, by=login)
        first, second, *_ = (record.id for record in records)
        shown = store.retrieval.records([first, second] if login == "ann" else [])  # bob's differ: one counter for all
        assert store.entries.give_numbers("mudpuppy", shown) == {one.id: one.number for one in shown}
        memory.update(second, text=f"the {word} costs 15 coins", reason=f"the {word} got dearer")
        store.entries.add([Record(f"{login}000000009", "memory", f"a {word} is gone", agent=login)], by=login)
        memory.forget(f"{login}000000009", f"the {word} left")
        store.vectors.put(MODEL, [RecordVectors(one.id, [axis(at)]) for at, one in enumerate(records)])
        store.entries.link([(first, second, "conflict", 1.0)])
        store.entries.log_access([Access(first, now_ms(), "search", f"where is the {word}", 1.0)], oldest=0, rows=1000)
        store.caches.put_many("expansion", {f"{word} key": word.encode()}, now=True)
        (folder / "page.md").write_text(f"# {word}\n\nEverything about the {word}, see the {other}.\n")
        memory.index(folder)
        memory.store.settle()


@pytest.fixture(scope="module")
def teams(logins: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Team, Team]]:
    """A schema in which Ann and Bob have stored the like, and one in which only Bob has: to him, they are alike."""
    with (
        team_of(logins, "shared_team") as both,
        team_of(logins, "alone") as alone,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
        for team in (both, alone):
            for login in ("ann", "bob"):
                team.administration("boss").grant(login, agents=[login], collections=[f"{login}files"])
        folders = {login: tmp_path_factory.mktemp("files") / f"{login}files" for login in ("ann", "bob")}
        for folder in folders.values():
            folder.mkdir()
        fill(both, "ann", "zanzibar", "quagga", folders["ann"])
        for team in (both, alone):
            fill(team, "bob", "wombat", "burrow", folders["bob"])
        yield both, alone


def exported(memory: Memory, **options: Any) -> str:
    target = io.BytesIO()
    report = memory.transfer.export(target, vectors=True, **options)
    return f"{target.getvalue().decode()} {report}"


ANN = [record.id for record in records_of("ann", "", "")]
READS: dict[str, Callable[[Memory], object]] = {
    "search": lambda memory: memory.search("zanzibar wombat"),
    "search as everyone": lambda memory: memory.search("zanzibar wombat", agent="*"),
    "search as the other": lambda memory: memory.search("zanzibar", agent="ann"),
    "search by keyword": lambda memory: memory.search("zanzibar coins", agent="*", mode="keyword"),
    "search strictly": lambda memory: memory.search('"zanzibar costs" OR coins', agent="*"),
    "search by prefix": lambda memory: memory.search("zanz* OR womb*", agent="*"),
    "search for a substring": lambda memory: memory.search('"anzib"', agent="*"),
    "search with a typing error": lambda memory: memory.search("zanzibr", agent="*"),
    "search by tag": lambda memory: memory.search("coins lives", agent="*", tags=["zanzibar"]),
    "search by type": lambda memory: memory.search("coins", agent="*", types=["decision"]),
    "search as of a day": lambda memory: memory.search("zanzibar coins", agent="*", as_of="2026-01-01"),
    "search with explanations": lambda memory: memory.search("coins", agent="*", explain=True),
    "count": lambda memory: memory.count("coins OR zanzibar", agent="*"),
    "get by id": lambda memory: memory.get(*ANN),
    "get by a part of an id": lambda memory: memory.get("ann00"),
    "get as of a day": lambda memory: memory.get(ANN[1], as_of="2026-01-01"),
    "get by path": lambda memory: memory.get("page.md"),
    "get of the other's collection": lambda memory: memory.get("annfiles/page.md"),
    "get by glob": lambda memory: memory.get("*.md"),
    "get of the history": lambda memory: memory.get(f"history:{ANN[1]}"),
    "get of conflicts": lambda memory: memory.get("conflicts"),
    "get of the timeline": lambda memory: memory.get("timeline:2020-01-01..2030-01-01"),
    "get of links": lambda memory: memory.get(f"links:{ANN[0]}"),
    "list": lambda memory: memory.list(Filters(agent="*")),
    "list of expired and all": lambda memory: memory.list(Filters(agent="*", include_expired=True), limit=50),
    "list as of a day": lambda memory: memory.list(Filters(agent="*", as_of=WHEN + 100 * DAY)),
    "history": lambda memory: memory.history("bob000000002"),
    "status": lambda memory: memory.status(),
    "doctor": lambda memory: memory.doctor(),
    "tags": lambda memory: memory.labels.tags(),
    "types": lambda memory: memory.labels.types(),
    "statistics": lambda memory: memory.maintenance.statistics("*"),
    "secret scan": lambda memory: memory.maintenance.scan(),
    "near duplicates": lambda memory: memory.maintenance.consolidate(),
    "sessions": lambda memory: memory.conversations.list(agent="*"),
    "a session": lambda memory: memory.conversations.session("s1", agent="*"),
    "turns around": lambda memory: memory.conversations.around(ANN[2]),
    "profile": lambda memory: memory.profile.get(agent="ann"),
    "profile history": lambda memory: memory.profile.history(agent="ann"),
    "contacts": lambda memory: memory.contacts.list(agent="*"),
    "due skills": lambda memory: memory.skills.due(agent="*"),
    "projects": lambda memory: memory.projects.list(agent="*"),
    "notes": lambda memory: memory.notes.files("ann"),
    "timeline": lambda memory: memory.timeline.events("2020-01-01", agent="*"),
    "agents": lambda memory: memory.entries.agents(),
    "entries": lambda memory: memory.entries.get_many([*ANN, "bob000000001"]),
    "entries by a prefix": lambda memory: memory.entries.starting("ann"),
    "entries by number": lambda memory: memory.store.entries.by_number("ann", 1),
    "store: by number in a program": lambda memory: memory.store.entries.by_number(
        "ann", 1, program="mudpuppy", kind="memory"
    ),
    "store: numbers in a program": lambda memory: memory.store.entries.numbers("mudpuppy", ANN),
    "usage": lambda memory: memory.entries.usage([*ANN, "bob000000001"]),
    "conflicts": lambda memory: memory.entries.in_conflict(Filters(agent="*")),
    "changes": lambda memory: list(memory.entries.changes(0, WHEN * 2)),
    "collections": lambda memory: memory.collections.list(),
    "documents": lambda memory: memory.collections.documents(),
    "documents of the other's collection": lambda memory: memory.collections.documents_of("annfiles"),
    "export": exported,
    "export of the other": lambda memory: exported(memory, agent="ann"),
    "store: substring": lambda memory: memory.store.retrieval.substring(["zanzibar"], Filters(agent="*"), 10),
    "store: nearest": lambda memory: nearest(memory.store, axis(0), Filters(agent="*")),
    "store: nearest size": lambda memory: memory.store.retrieval.nearest(
        MODEL, np.asarray(axis(0), np.float32), Filters(agent="*"), 10
    ).size,
    "store: vectors": lambda memory: sorted(memory.store.vectors.stored(MODEL, [*ANN, "bob000000001"])),
    "store: spaces": lambda memory: memory.store.vectors.spaces(),
    "store: pending": lambda memory: memory.store.vectors.pending(MODEL),
    "store: embedded": lambda memory: memory.store.vectors.embedded_records(MODEL, 50),
    "store: vocabulary": lambda memory: memory.store.retrieval.terms("", shortest=1, longest=99, limit=999),
    "store: frequencies": lambda memory: memory.store.retrieval.term_statistics(["zanzibar", "coin", "wombat"]),
    "store: owners": lambda memory: memory.store.entries.owners([*ANN, "bob000000001"]),
    "store: states": lambda memory: memory.store.entries.states_at(WHEN),
    "store: expired": lambda memory: memory.store.entries.expired(WHEN * 2),
    "store: linked": lambda memory: memory.store.entries.linked_pairs("conflict", "*"),
    "store: logged queries": lambda memory: memory.store.entries.logged_queries(),
    "store: caches": lambda memory: list(memory.store.caches.items()),
    "store: unextracted": lambda memory: memory.store.entries.unextracted("*", 50),
    "store: domains": lambda memory: memory.store.files.domains(),
    "store: known as": lambda memory: memory.store.retrieval.find_by_foreign_id("zanzibar"),
}  # fmt: skip
COMMANDS = [
    ["search", "zanzibar wombat"], ["search", "--agent", "*", "zanzibar"], ["search", "--agent", "ann", "coins"],
    ["search", "--as-of", "2026-01-01", "--agent", "*", "zanzibar"], ["search", "-c", "annfiles", "zanzibar"],
    ["get", ANN[0]], ["get", "ann00"], ["get", "--as-of", "2026-01-01", ANN[1]], ["get", "annfiles/page.md"],
    ["list", "--agent", "*"], ["list", "-c", "annfiles"], ["list", "--kind", "turn", "--agent", "ann"],
    ["tags", "--agent", "*"], ["types", "--agent", "*"], ["history", ANN[1]], ["timeline", "--agent", "*"],
    ["stats", "--agent", "*"], ["status"], ["doctor"], ["scan"], ["models"], ["consolidate", "--agent", "*"],
    ["conversation", "list", "--agent", "*"], ["profile", "show", "--agent", "ann"],
    ["contact", "list", "--agent", "*"],
    ["skill", "list", "--agent", "*"], ["project", "list", "--agent", "*"], ["export", "-", "--agent", "*"],
    ["backfill"], ["optimize"],
]  # fmt: skip


def alike(result: object) -> str:
    """A result without what differs between any two runs: times, the schema's name, numbers of one counter for all."""
    text = str(result)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?|\b\d\d:\d\d:\d\dZ|\b1[67]\d{11}\b|[\d.]+ s\b", "TIME", text)
    text = re.sub(r"\d+\.\d+(e-\d+)?", lambda found: f"{float(found[0]):.2f}", text)  # recency counts seconds
    text = re.sub(r"(change|number|seq|mtime_ns|last_number)(\W+)\d+|indexed_at=\d+", r"\1\2N", text)
    text = re.sub(r'"bob":\s?\d+', '"bob": N', text)
    return re.sub(r"schema=(shared_team|alone)", "schema", text)


def outcome(read: Callable[[], object]) -> str:
    try:
        return alike(read())
    except MindexError as error:
        return alike(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("name", READS)
def test_to_bob_a_memory_with_ann_is_like_one_without_her(teams: tuple[Team, Team], name: str) -> None:
    seen = []
    for team in teams:
        with team.memory("bob") as memory:
            seen.append(outcome(lambda: READS[name](memory)))
    assert seen[0] == seen[1]
    asked = ("search", "get", "store: frequencies", "store: logged")  # they name what Bob has asked for
    for secret in SECRETS if not name.startswith(asked) else ():
        assert secret not in seen[0]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_shows_bob_what_is_anns(teams: tuple[Team, Team], arguments: list[str], form: str) -> None:
    more = ["--json"] if form == "json" and arguments[0] != "export" else []
    seen = [alike(team.run("bob", *arguments, *more)) for team in teams]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("table", [*RIGHTS, "pg_stats"])
def test_no_row_of_any_table_shows_bob_what_is_anns(teams: tuple[Team, Team], table: str) -> None:
    """What Bob reads without mindex: SQL of his own."""
    both, _ = teams
    with psycopg.connect(both.server.url(user="bob")) as connection:
        connection.execute("SET search_path TO shared_team, public")
        rows = connection.execute(f"SELECT * FROM {table}".encode()).fetchall()
    if table == "pg_stats":
        rows = [row for row in rows if row[0] == "shared_team"]
    if table == "access_log":  # his own questions
        assert {row[-1] for row in rows} == {"bob"}
        rows = [row[:4] for row in rows]
    shown = str(rows)
    assert not re.search(r"zanzibar|quagga|ann0|annfiles|\bann\b", shown)


def test_ann_and_the_owner_see_what_is_theirs(teams: tuple[Team, Team]) -> None:
    both, _ = teams
    with both.memory("ann") as memory:
        assert {hit.record.id for hit in memory.search("zanzibar", limit=10).hits} >= set(ANN[:2])
        assert memory.count("zanzibar") == 7
    with both.memory("boss") as memory:
        assert memory.entries.agents() == ("ann", "bob")
        assert memory.count("zanzibar OR wombat", agent="*") == 14
        assert all(check.ok for check in memory.doctor())


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

WRITES: dict[str, Callable[[Memory, Path], object]] = {
    "add": lambda memory, _: memory.add("a new thing", agent="ann"),
    "update": lambda memory, _: memory.update(ANN[0], text="changed"),
    "forget": lambda memory, _: memory.forget(ANN[0]),
    "restore": lambda memory, _: memory.restore("ann000000009"),
    "undo": lambda memory, _: memory.undo(ANN[1]),
    "purge": lambda memory, _: memory.purge(ANN[0]),
    "profile": lambda memory, _: memory.profile.set({"name": "Bob"}, agent="ann"),
    "contact": lambda memory, _: memory.contacts.add(agent="ann", name="Bob"),
    "turn": lambda memory, _: memory.conversations.add("hello", "hi", agent="ann"),
    "note": lambda memory, _: memory.notes.create("ann", "/memories/a.md", "text"),
    "import": lambda memory, folder: memory.transfer.import_(folder / "export.jsonl", agent="ann"),
    "remove the collection": lambda memory, _: memory.collections.remove("annfiles"),
    "index into the collection": lambda memory, folder: memory.index(folder / "other", name="annfiles"),
    "link": lambda memory, _: memory.store.entries.link([(ANN[0], ANN[2], "conflict", 0.5)]),
    "vectors": lambda memory, _: memory.store.vectors.put(MODEL, [RecordVectors(ANN[0], [axis(9)])]),
    "context": lambda memory, _: memory.store.files.drop_contexts(["annfiles"]),
    "facts": lambda memory, _: memory.store.entries.mark_extracted(ANN[2], 3),
}  # fmt: skip
_NO_ERROR = {"vectors", "context", "link", "facts"}  # they pass by what they do not find, or may not change


def whole(team: Team) -> str:
    """All that belongs to Ann, as the administrator sees it."""
    queries = (
        "SELECT * FROM {0}.records WHERE owner LIKE 'ann%' ORDER BY id",
        "SELECT * FROM {0}.history WHERE record LIKE 'ann%' ORDER BY change",
        "SELECT * FROM {0}.words WHERE owner LIKE 'ann%' ORDER BY record",
        "SELECT * FROM {0}.vectors WHERE owner LIKE 'ann%' ORDER BY record",
        "SELECT * FROM {0}.links WHERE source LIKE 'ann%' ORDER BY source, target",
        "SELECT * FROM {0}.collections WHERE name LIKE 'ann%'",
        "SELECT * FROM {0}.documents WHERE collection LIKE 'ann%'",
        "SELECT * FROM {0}.extractions WHERE record LIKE 'ann%'",
    )
    return "\n".join(str(team.server.run(query.format(team.schema))) for query in queries)


@pytest.mark.parametrize("granted", ["nothing", "read-only"])
@pytest.mark.parametrize("name", WRITES)
def test_a_login_cannot_write_without_a_grant_for_writing(
    teams: tuple[Team, Team], tmp_path: Path, name: str, granted: str
) -> None:
    both, _ = teams
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "new.md").write_text("new")
    if granted == "read-only":
        both.administration("boss").grant("bob", agents=["ann"], collections=["annfiles"], read_only=True)
    try:
        before = whole(both)
        with both.memory("bob") as memory:
            (tmp_path / "export.jsonl").write_text(exported(memory, agent="bob").rpartition("\n")[0])
            try:
                WRITES[name](memory, tmp_path)
            except MindexError:
                assert name not in _NO_ERROR or granted == "read-only"
            else:
                assert name in _NO_ERROR
        assert whole(both) == before
    finally:
        if granted == "read-only":
            both.administration("boss").revoke("bob", agents=["ann"], collections=["annfiles"])


def test_a_read_only_grant_shows_everything_and_writes_nothing(teams: tuple[Team, Team]) -> None:
    both, _ = teams
    boss = both.administration("boss")
    boss.grant("carl", agents=["ann"], collections=["annfiles"], read_only=True)
    try:
        with both.memory("carl", "ann") as memory:
            assert memory.store.read_only
            assert memory.count("zanzibar") == 7
            assert memory.get(ANN[0]).records and len(memory.history(ANN[1])) == 2
            with pytest.raises(StoreError, match="is read-only"):
                memory.add("more")
    finally:
        boss.revoke("carl")
    with pytest.raises(StoreError, match=r"may not do that .*permission denied"):
        open_store(both.url("carl"))


def test_a_collection_called_like_an_agent_opens_none_of_its_words(logins: PostgresServer) -> None:
    with team_of(logins, "alike") as team:
        team.administration("boss").grant("ann", agents=["ann"])
        team.administration("boss").grant("bob", agents=["bob"], collections=["ann"])
        with team.memory("ann") as memory:
            memory.add("The zanzibar vault code is quagga")
        with psycopg.connect(logins.url(user="bob"), autocommit=True) as connection:
            for table in ("words", "terms"):
                assert connection.execute(f"SELECT * FROM alike.{table}".encode()).fetchall() == []
                assert connection.execute(f"DELETE FROM alike.{table} WHERE owner = 'ann'".encode()).rowcount == 0
        with team.memory("ann") as memory:
            assert memory.search("zanzibar").hits


def test_a_row_of_one_login_is_never_an_entry_of_another_agent(logins: PostgresServer) -> None:
    forged = (
        "INSERT INTO forged.records"
        " (owner, id, kind, agent, number, created_at, updated_at, title, fields, text, summary)"
        " VALUES ('bob', 'gkbqbeiptqqx', 'profile', 'ann', 500, 1, 1, 'Profile of ann', '{}', '', '')"
    )
    with team_of(logins, "forged") as team:
        team.administration("boss").grant("bob", agents=["bob"])
        with psycopg.connect(logins.url(user="bob")) as connection, pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(forged.encode())


def test_functions_of_the_owner_are_for_those_who_need_them(logins: PostgresServer) -> None:
    with team_of(logins, "called") as team:
        team.administration("boss").grant("ann", agents=["ann"])
        team.administration("boss").grant("bob", agents=["ann"], read_only=True)
        for login, function in (("bob", "merge_counts"), ("carl", "merge_counts"), ("carl", "ambiguous_owners")):
            with psycopg.connect(logins.url(user=login)) as connection, pytest.raises(psycopg.Error, match="denied"):
                connection.execute(f"SELECT called.{function}()".encode())


def test_an_agent_and_a_collection_of_the_same_name_are_two_grants(logins: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "same").mkdir()
    (tmp_path / "same" / "page.md").write_text("# Quagga\n\nThe quagga is extinct.\n")
    with team_of(logins, "named_alike") as team:
        team.administration("boss").grant("ann", collections=["same"])
        team.administration("boss").grant("bob", agents=["same"])
        with team.memory("ann") as memory:
            memory.index(tmp_path / "same")
        with team.memory("bob", "same") as memory:
            memory.add("the wombat digs")
            assert memory.count("quagga OR wombat") == 1
            assert "quagga" not in memory.store.retrieval.terms("", shortest=1, longest=99, limit=99)
            with pytest.raises(StoreError, match="may not write collection same"):
                memory.index(tmp_path / "same")
        with team.memory("ann", "same") as memory:
            assert memory.count("quagga OR wombat") == 1
            assert "wombat" not in memory.store.retrieval.terms("", shortest=1, longest=99, limit=99)


def test_a_login_without_an_agent_gets_the_list_of_its_grants(teams: tuple[Team, Team]) -> None:
    both, _ = teams
    refused = run_here("--db", both.url("bob"), "add", "the wombat digs")
    assert refused.code == 1
    assert "the login bob may not write agent main" in refused.err
    assert "it was granted agent bob, collection bobfiles; use --agent bob or MINDEX_AGENT=bob" in refused.err


def test_a_read_only_grant_is_named_as_such(teams: tuple[Team, Team]) -> None:
    both, _ = teams
    boss = both.administration("boss")
    boss.grant("bob", agents=["ann"], read_only=True)
    boss.grant("carl", agents=["ann"], read_only=True)
    try:
        for write in (["add", "more"], ["forget", ANN[0]], ["update", ANN[0], "--text", "other"]):
            refused = run_here("--db", both.url("bob"), "--agent", "ann", *write)
            assert "the login bob may not write agent ann" in refused.err and "its grant is read-only" in refused.err
        refused = run_here("--db", both.url("carl"), "--agent", "ann", "add", "more")
        assert "is read-only for the login carl, which was granted agent ann (read-only)" in refused.err
        assert "mindex admin grant carl --agent ann" in refused.err and "primary" not in refused.err
    finally:
        boss.revoke("bob", agents=["ann"])
        boss.revoke("carl")


def test_a_write_in_a_larger_transaction_is_refused_with_the_grants_too(teams: tuple[Team, Team]) -> None:
    with (
        teams[0].memory("bob", "main") as memory,
        pytest.raises(StoreError, match="use --agent bob"),
        memory.store.entries.transaction(),
    ):
        memory.add("more")


def test_a_search_of_an_agent_that_was_not_granted_says_what_the_login_sees(teams: tuple[Team, Team]) -> None:
    both, _ = teams
    both.administration("boss").grant("carl", agents=["carl"])
    try:
        stranger = run_here("--db", both.url("carl"), "search", "wombat").out
        assert "this login cannot see entries of agent main; it was granted agent carl" in stranger
        assert "the memory is empty" in run_here("--db", both.url("carl"), "--agent", "carl", "search", "wombat").out
        with both.memory("carl") as memory:
            memory.add("the wombat digs")
        stranger = run_here("--db", both.url("carl"), "search", "wombat").out
        assert "this login cannot see entries of agent main; it was granted agent carl" in stranger
        assert "no folder is indexed" not in stranger
    finally:
        with both.memory("carl") as memory:
            memory.purge(*(record.id for record in memory.list(Filters(agent="carl")).records))
        both.administration("boss").revoke("carl")


# ── back-up ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dump_is_the_owners_to_make(teams: tuple[Team, Team], tmp_path: Path) -> None:
    both, _ = teams
    arguments = ["--format=custom", "--schema=shared_team", f"--file={tmp_path / 'memory.dump'}"]
    with pytest.raises(subprocess.CalledProcessError) as refused:
        both.server.program("pg_dump", *arguments, both.server.url(user="bob"))
    assert b"permission denied" in refused.value.stderr or b"row-level security" in refused.value.stderr
    both.server.program("pg_dump", *arguments, both.server.url(user="boss"))


@pytest.mark.slow
def test_a_dump_is_restored_on_a_server_without_the_roles(teams: tuple[Team, Team], tmp_path: Path) -> None:
    """In the order of docs/team.md."""
    both, _ = teams
    dump = f"{tmp_path / 'memory.dump'}"
    both.server.program(
        "pg_dump", "--format=custom", "--schema=shared_team", f"--file={dump}", both.server.url(user="boss")
    )
    with PostgresServer() as server:
        server.run(*(f"CREATE ROLE {login} LOGIN" for login in LOGINS), "CREATE DATABASE other")
        server.run("CREATE EXTENSION vector SCHEMA public", database="other")
        target = f"--dbname={server.url(database='other')}"
        server.program("pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", target, dump)
        restored = Team(server, "shared_team", database="other")
        restored.administration("postgres").init(["boss"], run=True)
        assert restored.administration("boss").list() == both.administration("boss").list()
        for login, word, hidden in (("ann", "zanzibar", "wombat"), ("bob", "wombat", "zanzibar")):
            with restored.memory(login) as memory:
                assert memory.count(word) == 7
                assert memory.count(hidden, agent="*") == 0
                memory.add(f"{login} has moved")
        with restored.memory("boss") as memory:
            assert all(check.ok for check in memory.doctor())
        owners = "SELECT DISTINCT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'shared_team'::regnamespace"
        assert server.run(owners, database="other") == [("other_shared_team_owner",)]


# ── administration ────────────────────────────────────────────────────────────────────────────────────────────


def test_init_prints_a_script_without_connecting(logins: PostgresServer) -> None:
    printed = run_here(
        "--db", "postgresql://nobody@nowhere.invalid/postgres?schema=wall", "admin", "init", "--owner", "ann"
    )
    assert printed.code == 0
    owner = '"postgres_wall_owner"'
    for part in ("CREATE EXTENSION", f"CREATE ROLE {owner} NOLOGIN", f"AUTHORIZATION {owner}", 'TO "ann"'):
        assert part in printed.out
    with psycopg.connect(logins.url(), autocommit=True) as connection:
        for _ in range(2):  # what was printed runs as it is, and again
            connection.execute(printed.out.encode())
    try:
        with Memory(logins.url(user="ann", schema="wall"), options=OPTIONS) as memory:
            memory.add("stored by a member of the owner's role")
        owners = logins.run("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'wall'")
        assert owners == [("postgres_wall_owner",)]
    finally:
        logins.run(
            "DROP OWNED BY postgres_wall_owner, postgres_wall_writer, postgres_wall_reader CASCADE",
            "DROP ROLE postgres_wall_owner, postgres_wall_writer, postgres_wall_reader",
        )


def test_a_script_needs_the_name_of_the_database_because_the_roles_are_called_after_it() -> None:
    printed = run_here("--db", "postgresql://?service=team", "admin", "init")
    assert printed.code == 1 and "names no database" in printed.err and "--run" in printed.err


@pytest.mark.parametrize(
    ("database", "schema", "writer"),
    [
        ("team", "mindex", "team_mindex_writer"),
        ("my_team", "mindex", r"my_team_mindex_[0-9a-f]{8}_writer"),
        ("t" * 60, "mindex", r"t{47}_[0-9a-f]{8}_writer"),
        ("é" * 30, "mindex", r"é{23}_[0-9a-f]{8}_writer"),
    ],
)
def test_roles_are_called_after_the_database_and_the_schema(database: str, schema: str, writer: str) -> None:
    name = group_roles(database, schema).writer
    assert re.fullmatch(writer, name) and len(name.encode()) <= 63


def test_roles_of_two_databases_never_have_the_same_name() -> None:
    assert group_roles("a_b", "c") != group_roles("a", "b_c")
    assert group_roles("t" * 60, "one") != group_roles("t" * 60, "two")


def test_grants_in_one_database_say_nothing_about_another_of_the_same_server(logins: PostgresServer) -> None:
    logins.run("CREATE DATABASE elsewhere")
    other = Team(logins, "neighbour", database="elsewhere")
    try:
        with team_of(logins, "neighbour") as team:
            other.administration("postgres").init(["boss"], run=True)
            team.administration("boss").grant("ann", agents=["ann"])
            with pytest.raises(StoreError, match="permission denied"):
                open_store(other.url("ann"))
            other.administration("boss").grant("ann", agents=["ann"])
            team.administration("boss").revoke("ann")
            with other.memory("ann") as memory:
                memory.add("the wombat digs")
                assert memory.count("wombat") == 1
    finally:
        roles = ", ".join(f"elsewhere_neighbour_{purpose}" for purpose in ("owner", "writer", "reader"))
        logins.run(f"DROP OWNED BY {roles} CASCADE", f"DROP ROLE {roles}", database="elsewhere")
        logins.run("DROP DATABASE elsewhere")


def test_init_says_what_it_did_and_what_was_there(logins: PostgresServer) -> None:
    with team_of(logins, "twice") as team:
        again = team.administration("postgres").init(["boss", "ann"], run=True)
        assert {step.purpose: step.outcome for step in again.steps if step.statement} == {
            "extension": "there already", "role postgres_twice_owner": "there already",
            "role postgres_twice_writer": "there already", "role postgres_twice_reader": "there already",
            "owners pass rights on": "there already", "schema twice": "there already", "ownership": "there already",
            "use of the schema": "there already",
            "boss is an owner": "there already", "ann is an owner": "done",
        }  # fmt: skip


def test_init_takes_over_a_memory_that_a_person_has_made(logins: PostgresServer) -> None:
    logins.run("CREATE SCHEMA grown AUTHORIZATION ann")
    team = Team(logins, "grown")
    with team.memory("ann") as memory:
        memory.add("from before")
    with team_of(logins, "grown"):
        with team.memory("boss", "ann") as memory:
            assert memory.count("before") == 1
        with pytest.raises(StoreError, match="permission denied"):
            open_store(team.url("ann"))


def test_a_login_that_may_not_set_up_gets_the_names_of_those_that_may(logins: PostgresServer) -> None:
    ran = run_here("--db", logins.url(user="ann", schema="denied"), "admin", "init", "--run")
    assert ran.code == 1 and "this login may not set up" in ran.err and "as a superuser" in ran.err


def test_a_server_without_pgvector_is_named_before_anything_is_made(
    logins: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "_CREATE_EXTENSION", "CREATE EXTENSION not_there")
    logins.run("CREATE DATABASE bare")
    try:
        ran = run_here("--db", logins.url(database="bare"), "admin", "init", "--run")
        assert ran.code == 1 and "has no pgvector; install pgvector 0.8 or newer on the server" in ran.err
        assert logins.run("SELECT 1 FROM pg_roles WHERE rolname LIKE 'bare_%'") == []
    finally:
        logins.run("DROP DATABASE bare")


def test_a_grant_to_a_missing_login_says_how_it_is_created(teams: tuple[Team, Team]) -> None:
    with pytest.raises(NotFoundError, match='CREATE ROLE "dora" LOGIN'):
        teams[0].administration("boss").grant("dora", agents=["dora"])


def test_an_owner_who_does_not_exist_is_refused_before_anything_is_made(logins: PostgresServer) -> None:
    ran = run_here("--db", logins.url(schema="ownerless"), "admin", "init", "--run", "--owner", "bos")
    assert ran.code == 1 and "has no login bos" in ran.err and 'CREATE ROLE "bos" LOGIN' in ran.err
    assert logins.run("SELECT 1 FROM pg_roles WHERE rolname LIKE 'postgres_ownerless%'") == []


def test_a_revoke_says_whose_grants_are_gone_and_a_grant_which_collection_is_not_there_yet(
    teams: tuple[Team, Team],
) -> None:
    both, _ = teams
    granted = both.run("boss", "admin", "grant", "carl", "--agent", "carl", "--collection", "typo").out
    assert "note: there is no collection typo yet" in granted
    revoked = both.run("boss", "admin", "revoke", "carl", "-c", "typo").out
    assert "carl" in revoked and "no grants" not in revoked
    assert "carl has no grants" in both.run("boss", "admin", "revoke", "carl", "--agent", "carl").out
    known = both.run("boss", "admin", "grant", "carl", "--agent", "carl", "--collection", "annfiles").out
    assert "no collection" not in known
    both.administration("boss").revoke("carl")


def test_only_owners_grant(teams: tuple[Team, Team]) -> None:
    with pytest.raises(StoreError, match=r"does not own .*a login of the role postgres_shared_team_owner"):
        teams[0].administration("bob").grant("bob", agents=["ann"])


@pytest.mark.parametrize("agents", [[], ["*"], [""]])
def test_a_grant_names_what_it_grants(teams: tuple[Team, Team], agents: list[str]) -> None:
    with pytest.raises(UsageError):
        teams[0].administration("boss").grant("bob", agents=agents)


def test_a_revoke_of_what_was_not_granted_says_so(teams: tuple[Team, Team]) -> None:
    with pytest.raises(NotFoundError, match="no such grant"):
        teams[0].administration("boss").revoke("bob", agents=["ann"])


def test_grants_are_listed(teams: tuple[Team, Team]) -> None:
    listed = teams[0].run("boss", "admin", "list").out
    assert re.search(r"ann +agent +ann +reads and writes", listed)
    assert "row-level security is on" in listed


def test_without_a_grant_the_roles_see_everything_and_the_reader_writes_nothing(logins: PostgresServer) -> None:
    with team_of(logins, "open_team") as team:
        logins.run("GRANT postgres_open_team_writer TO ann", "GRANT postgres_open_team_reader TO bob")
        with team.memory("ann") as memory:
            id_ = memory.add("the wombat digs").id
            memory.store.vectors.put(MODEL, [RecordVectors(id_, [axis(1)])])
            memory.update(id_, text="the wombat sleeps")
            memory.purge(memory.add("gone").id)
            memory.maintenance.optimize()
        with team.memory("bob", "ann") as memory:
            assert memory.count("wombat") == 1 and memory.store.read_only
            with pytest.raises(StoreError, match="is read-only"):
                memory.add("more")


def test_an_older_schema_is_the_owners_to_bring_up_to_date(
    logins: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team_of(logins, "older") as team:
        logins.run("GRANT postgres_older_writer TO ann", "GRANT postgres_older_reader TO bob")
        newer = (*migrations.MIGRATIONS, lambda transaction: transaction.run("CREATE TABLE things (name text)"))
        monkeypatch.setattr(migrations.migrate, "__defaults__", (newer,))
        for login in ("ann", "bob"):
            with pytest.raises(SchemaError, match=r"older mindex.* have a login of"):
                open_store(team.url(login))
        team.administration("boss").grant("carl", agents=["carl"])
        for login in ("boss", "ann", "bob", "carl"):
            open_store(team.url(login)).close()
        # A table that the list of rights does not name is the owner's alone.
        for login in ("ann", "bob", "carl"):
            with psycopg.connect(logins.url(user=login)) as connection, pytest.raises(psycopg.Error, match="denied"):
                connection.execute("SELECT * FROM older.things")


def test_a_login_with_grants_cannot_change_the_model_of_all(teams: tuple[Team, Team]) -> None:
    with closing(open_store(teams[0].url("bob"))) as store, pytest.raises(StoreError, match="mindex reembed"):
        store.vectors.begin_space(MODEL, None)  # type: ignore[arg-type]
