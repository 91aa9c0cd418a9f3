"""The part of the front door for a whole assistant's memory: conversations, profiles, people, projects, skills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mindex.analyzer import analyze
from mindex.clock import now_ms, parse_time
from mindex.errors import UsageError
from mindex.learning import Learning
from mindex.model import KINDS, Change, Filters, Record
from mindex.store.base import Page

if TYPE_CHECKING:  # as in telling: nothing of this is paid for by a search
    from mindex.memories.contacts_projects_skills import Things
    from mindex.memories.conversations import Conversations
    from mindex.memories.field_specs import ThingKind
    from mindex.memories.profile import Profiles
    from mindex.model import DueSkill, TimelineEvent

_MOST_LISTED = 500
_MOST_EVENTS = 200


class Knowing(Learning):
    """Mixed into Memory. All of it is records: searched, undone, exported like any other."""

    # ── conversations ─────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _conversations(self) -> Conversations:
        from mindex.memories.conversations import Conversations

        return Conversations(self.store, self._secrets_mode, self.settings.text("agent"))

    def add_conversation(
        self,
        user_message: str,
        agent_response: str,
        *,
        session_id: str = "",
        tags: Sequence[str] = (),
        speaker: str = "",
        at: str | None = None,
        agent: str | None = None,
        extract: bool = True,
    ) -> tuple[Record, tuple[str, ...]]:
        """Keep one exchange; answers its record and which kinds of secrets were left out.

        Whether its vector could be made say `vector_notes`.
        `speaker` names whoever said `user_message`: people are looked for by their names.
        Where a language model is configured it is asked for the facts in it afterwards (`generation.extract_facts`);
        whoever wants to know what came of that says no to `extract` here and calls `extract_facts_of`.
        """
        record, redacted = self._conversations.add(
            user_message,
            agent_response,
            agent=self._agent(agent),
            session_id=session_id,
            tags=tags,
            speaker=speaker,
            at=parse_time(at) if at else None,
        )
        self._embed_soon(record.id)
        if extract:
            self._extract_soon(record)
        return record, redacted

    def around(self, id_: str, before: int = 2, after: int = 2) -> tuple[Record, ...]:
        """An exchange with its neighbours in the same session, in order."""
        from mindex.memories.find_entry import find_entry

        return self.store.entries.surrounding_turns(find_entry(self.store, id_).id, before, after)

    def conversation(self, session_id: str, *, agent: str | None = None) -> tuple[Record, ...]:
        """Every exchange of a session, in order; none when there is no such session."""
        scope = Filters(kinds=("turn",), session=session_id, agent=agent or self.settings.text("agent"))
        found: list[Record] = []
        while session_id and (page := self.store.retrieval.list(scope, limit=_MOST_LISTED, offset=len(found)).records):
            found += page
        return tuple(sorted(found, key=lambda turn: (turn.created_at, turn.number or 0)))

    # ── the profile ───────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _profiles(self) -> Profiles:
        from mindex.memories.profile import Profiles

        return Profiles(self.store, self._crosses, self.settings.text("agent"))

    def profile(self, path: str = "", *, agent: str | None = None) -> Any:
        """An agent's profile, or what stands at a path such as `user.name` or `projects[0]`."""
        return self._profiles.get(self._agent(agent), path)

    def profile_record(self, *, agent: str | None = None) -> Record | None:
        return self._profiles.record(self._agent(agent))

    def set_profile(self, changes: Mapping[str, Any], reason: str = "", *, agent: str | None = None) -> Change:
        """Change places of the profile by their paths; None takes a place away."""
        return self._changed(self._profiles.set(self._agent(agent), changes, reason))

    def profile_history(self, *, agent: str | None = None) -> tuple[Change, ...]:
        return self._profiles.history(self._agent(agent))

    def rollback_profile(self, version: int, reason: str = "", *, agent: str | None = None) -> Change:
        return self._changed(self._profiles.rollback(self._agent(agent), version, reason))

    # ── contacts, projects, skills ────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _things(self) -> Things:
        from mindex.memories.contacts_projects_skills import Things

        return Things(self.store, self._crosses, self.settings.text("agent"))

    def create(self, kind: ThingKind, *, agent: str | None = None, **fields: object) -> Record:
        """A contact, project or skill; the fields are those of `mindex.memories.field_specs`.

        Whether its vector could be made say `vector_notes`.
        """
        record = self._things.create(_thing(kind), fields, self._agent(agent))
        self._embed_soon(record.id)
        return record

    def thing(self, kind: ThingKind, id_: str) -> Record:
        """By its id, a unique start of it, or its exact name."""
        return self._things.get(_thing(kind), id_, self.settings.text("agent"))

    def things(
        self, kind: ThingKind, *, limit: int = 50, agent: str | None = None, **wanted: object
    ) -> tuple[Record, ...]:
        """Those whose fields equal what is wanted (of a name a part is enough); agent `*` sees everyone's."""
        return self.things_found(kind, limit=limit, agent=agent, **wanted).records

    def things_found(self, kind: ThingKind, *, limit: int = 50, agent: str | None = None, **wanted: object) -> Page:
        """The same, with how many there are in all."""
        if limit < 1:
            raise UsageError(f"limit {limit} is too small", f"use 1 to {_MOST_LISTED}")
        scope = agent or self.settings.text("agent")
        given = {name: value for name, value in wanted.items() if value is not None}
        return self._things.listed(_thing(kind), scope, given, min(limit, _MOST_LISTED))

    def update_thing(self, kind: ThingKind, id_: str, reason: str = "", **fields: object) -> Change:
        agent = self.settings.text("agent")
        return self._changed(self._things.update(_thing(kind), id_, fields, reason, agent=agent))

    def delete_thing(self, kind: ThingKind, id_: str, reason: str = "") -> Change:
        """Forget it; `restore` and `undo` bring it back."""
        return self._things.delete(_thing(kind), id_, reason, agent=self.settings.text("agent"))

    def due(self, now: datetime | None = None, *, agent: str | None = None) -> tuple[DueSkill, ...]:
        """The enabled skills whose time has come, longest due first. Running them is the agent's work."""
        from mindex.memories.skill_schedule import due_at
        from mindex.model import DueSkill

        moment = now or datetime.now(UTC)
        found = []
        for skill in self._things.all("skill", agent or self.settings.text("agent")):
            try:
                at = due_at(skill)
            except UsageError:  # brought in from elsewhere with a trigger that cannot be worked out: never due
                continue
            if at is not None and at <= moment:
                found.append(DueSkill(skill, int(at.timestamp() * 1000)))
        return tuple(sorted(found, key=lambda one: (one.since, one.skill.id)))

    # ── all of it in time ─────────────────────────────────────────────────────────────────────────────────────

    def timeline(
        self,
        after: str,
        before: str | None = None,
        query: str = "",
        *,
        kinds: Sequence[str] = (),
        limit: int = 50,
        agent: str | None = None,
    ) -> tuple[TimelineEvent, ...]:
        """What was learnt, said, changed and forgotten between two times, oldest first."""
        from mindex.model import TimelineEvent

        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise UsageError(f"unknown kind '{unknown[0]}'", f"use one of {', '.join(KINDS)}")
        if limit < 1:
            raise UsageError(f"limit {limit} is too small", f"use 1 to {_MOST_EVENTS}")
        wanted = set(analyze(query).words)
        scope = agent or self.settings.text("agent")
        until = parse_time(before) if before else now_ms() + 1
        events = []
        for change in self.store.entries.changes_between(parse_time(after), until):
            record = change.after
            if kinds and record.kind not in kinds:
                continue
            if scope in ("*", record.agent) and (not wanted or not wanted.isdisjoint(_words(record))):
                events.append(TimelineEvent(change.at, change.action, change.record, record.kind, record.summary))
            if len(events) == min(limit, _MOST_EVENTS):
                break
        return tuple(events)


def _words(record: Record) -> set[str]:
    return {*analyze(record.text).words, *analyze(record.title).words}


def _thing(kind: str) -> ThingKind:
    from mindex.memories.field_specs import THING_KINDS

    for known in THING_KINDS:
        if kind == known:
            return known
    raise UsageError(f"unknown kind '{kind}'", f"use one of {', '.join(THING_KINDS)}")
