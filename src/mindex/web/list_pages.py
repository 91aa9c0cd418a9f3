"""Pages that list entries: conversations, the timeline, the profile, people, projects and skills."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from mindex.clock import to_iso
from mindex.entries.field_specs import FIELDS, FieldEntryKind, FieldSpec
from mindex.entries.timeline import MAX_EVENTS
from mindex.errors import NotFoundError, UsageError
from mindex.present.record_view import stored_fields
from mindex.web.paths import record_path
from mindex.web.record_pages import history_row
from mindex.web.site import Call, Site

_SESSIONS = 30
_THINGS: Mapping[str, FieldEntryKind] = {"people": "contact", "projects": "project", "skills": "skill"}
_MAX_THINGS = 500


def list_routes(site: Site) -> list[Route]:
    return [
        site.page("/conversations", _conversations),
        site.page("/conversations/{session:path}", _conversation),
        site.page("/timeline", _timeline),
        site.page("/profile", _profile),
        site.form("/profile/set", _set_profile),
        site.form("/profile/rollback", _roll_back),
        *(site.page(f"/{name}", _field_entries) for name in _THINGS),
        *(site.form(f"/{name}/add", _add_thing) for name in _THINGS),
        *(site.form(f"/{name}/{{id}}/edit", _edit_thing) for name in _THINGS),
    ]


def _conversations(call: Call) -> Response:
    page = call.memory.conversations.list(limit=_SESSIONS, offset=call.offset)
    return call.render("conversations.html", page=page, offset=call.offset, page_size=_SESSIONS)


def _conversation(call: Call) -> Response:
    session = call.named("session")
    turns = call.memory.conversations.session(session)
    if not turns:
        raise NotFoundError(f"there is no conversation '{session}'", "the list of conversations has all of them")
    return call.render("conversation.html", session=session, turns=turns)


def _timeline(call: Call) -> Response:
    after, before, query = call.given("after"), call.given("before"), call.given("q")
    kinds = [kind for kind in call.request.query_params.getlist("kind") if kind]
    events = call.memory.timeline.events(after or None, before or None, query, kinds=kinds, limit=MAX_EVENTS)
    days = [(day, list(those)) for day, those in groupby(events, key=lambda event: to_iso(event.at)[:10])]
    chosen = {"after": after, "before": before, "q": query, "kind": kinds[0] if kinds else ""}
    return call.render("timeline.html", days=days, chosen=chosen, is_cut=len(events) == MAX_EVENTS)


# ── the profile ───────────────────────────────────────────────────────────────────────────────────────────────


def _profile(call: Call) -> Response:
    profile = call.memory.profile
    history = [history_row(change) for change in reversed(profile.history())]
    return call.render("profile.html", data=profile.get(), history=history, record=profile.record())


def _set_profile(call: Call) -> Response:
    """Set a value: JSON where it is some, else a text; an empty one removes it."""
    text = call.given("value")
    try:
        value = json.loads(text) if text else None
    except ValueError:
        value = text
    change = call.memory.profile.set({call.given("path"): value}, call.given("reason"))
    return call.done("/profile", "The profile was changed.", change)


def _roll_back(call: Call) -> Response:
    version = call.given("version")
    if not version.isdecimal():
        raise UsageError(f"'{version}' is not a version number", "choose one from the history")
    change = call.memory.profile.rollback(int(version))
    return call.done("/profile", f"The profile is as after change {version}.", change)


# ── people, projects and skills ───────────────────────────────────────────────────────────────────────────────


def _kind(call: Call) -> tuple[str, FieldEntryKind]:
    """The name of the page, and the kind of what it lists."""
    name = call.request.url.path.split("/")[1]
    return name, _THINGS[name]


def _form_text(spec: FieldSpec, value: object) -> str:
    """A value as a form shows it, and as `_given` reads it back."""
    if value is None:
        return ""
    if spec.shape == "json":
        return json.dumps(value, ensure_ascii=False)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _given(call: Call, spec: FieldSpec) -> object:
    """The value that a form holds for a field. Raises UsageError for one that should be JSON and is not."""
    text = call.given(spec.name)
    if spec.shape != "json" or not text:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{spec.name.replace('_', ' ')} is not JSON", spec.help) from None


def _field_entries(call: Call) -> Response:
    name, kind = _kind(call)
    page = call.memory.field_entries(kind).list(limit=_MAX_THINGS)
    specs = FIELDS[kind]
    shown = [
        (record, stored_fields(record), {spec.name: _form_text(spec, record.fields.get(spec.name)) for spec in specs})
        for record in page.records
    ]
    due = {one.skill.id: one.since for one in call.memory.skills.due()} if kind == "skill" else {}
    return call.render("things.html", name=name, kind=kind, things=shown, total=page.total, specs=specs, due=due)


def _add_thing(call: Call) -> Response:
    name, kind = _kind(call)
    fields: dict[str, Any] = {spec.name: _given(call, spec) for spec in FIELDS[kind] if call.given(spec.name)}
    record = call.memory.field_entries(kind).add(**fields)
    return call.done(f"/{name}", f"{record.title} was added.")


def _edit_thing(call: Call) -> Response:
    name, kind = _kind(call)
    things = call.memory.field_entries(kind)
    record = things.get(call.named("id"))
    fields: dict[str, Any] = {}
    for spec in FIELDS[kind]:
        given, shown = call.given(spec.name), _form_text(spec, record.fields.get(spec.name))
        if spec.name in call.form and given != shown and not (spec.required and not given):
            fields[spec.name] = _given(call, spec)
    if not fields:
        return call.done(f"/{name}", "Nothing was changed.")
    change = things.update(record.id, call.given("reason"), **fields)
    return call.done(record_path(record.id), "Changed.", change)
