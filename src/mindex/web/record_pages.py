"""The page of an entry, the forms that change it, and the pages that list entries: conversations, people …"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mindex.clock import to_iso
from mindex.datatypes import Change, Record
from mindex.entries.field_specs import FIELDS, FieldEntryKind, FieldSpec
from mindex.entries.timeline import MAX_EVENTS
from mindex.errors import ConflictError, NotFoundError, UsageError
from mindex.memory import Memory
from mindex.present.history import changed_lines
from mindex.present.record_view import anchor_view, own_fields, stored_fields, summary_of
from mindex.search.completion import current_anchor
from mindex.web.paths import file_path, record_path
from mindex.web.site import Call, Site

# The fields of the form, with how the record shows them.
_TEXTS = ("text", "summary", "context", "source")
_SESSIONS = 30
_THINGS: Mapping[str, FieldEntryKind] = {"people": "contact", "projects": "project", "skills": "skill"}
_MAX_THINGS = 500


def record_routes(site: Site) -> list[Route]:
    return [
        site.page("/add", lambda call: call.render("add.html", text=call.given("text"))),
        site.form("/add", _add),
        site.page("/record/{id}", _show),
        site.form("/record/{id}/edit", _edit),
        site.form("/record/{id}/forget", _forget),
        site.form("/record/{id}/restore", _restore),
        site.form("/record/{id}/undo", _undo),
        site.form("/record/{id}/supersede", _supersede),
        site.page("/conflicts", _conflicts),
        site.form("/conflicts/keep", _keep_one),
        site.form("/conflicts/both", _keep_both),
        site.form("/conflicts/merge", _merge),
        site.page("/conversations", _list_conversations),
        site.page("/conversations/{session:path}", _conversation),
        site.page("/timeline", _timeline),
        site.page("/profile", _profile),
        site.form("/profile/set", _set_profile),
        site.form("/profile/rollback", _roll_back),
        *(site.page(f"/{name}", _field_entries) for name in _THINGS),
        *(site.form(f"/{name}/add", _add_thing) for name in _THINGS),
        *(site.form(f"/{name}/{{id}}/edit", _edit_thing) for name in _THINGS),
    ]


def _find(memory: Memory, id_: str) -> Record:
    """A chunk or an entry, live or retired. Raises NotFoundError and AmbiguousIdError."""
    return memory.entries.get(id_) or memory.entries.find(id_)


def _show(call: Call) -> Response:
    memory = call.memory
    record = _find(memory, call.named("id"))
    if record.kind == "chunk":
        return RedirectResponse(file_path(record.collection, record.path, record.first_line, record.last_line), 303)
    record = current_anchor(record)
    is_live_memory = record.kind == "memory" and record.retired_at is None
    conflicts = memory.entries.conflicts(record.id) if is_live_memory else ()
    return call.render(
        "record.html",
        record=record,
        fields=own_fields(record),
        anchor=anchor_view(record),
        usage=memory.entries.usage([record.id]).get(record.id),
        history=[history_row(change) for change in reversed(memory.history(record.id))],
        conflicts=[(_find(memory, one.id), one.why) for one in conflicts],
        similar=memory.entries.similar(record.id) if is_live_memory else (),
        around=memory.conversations.around(record.id) if record.kind == "turn" else (),
    )


def history_row(change: Change) -> dict[str, Any]:
    """A change as the page shows it: the texts before and after are compared, the rest is in lines."""
    before, after = change.before, change.after
    has_new_text = before is not None and before.text != after.text and after.kind in ("memory", "note", "turn")
    lines = [] if before is None else changed_lines(change)
    if has_new_text and before is not None:
        lines = [line for line in lines if not line.startswith(("text: ", "summary: "))]
    compared = (before.text, after.text) if before and has_new_text else None
    return {"change": change, "compared": compared, "lines": lines}


# ── changing ──────────────────────────────────────────────────────────────────────────────────────────────────


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _number(call: Call, name: str, kind: type[int] | type[float]) -> int | float | None:
    text = call.given(name)
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"{name} is '{text}'", "write a number") from None


def _add(call: Call) -> Response:
    properties: dict[str, Any] = {name: call.given(name) for name in ("type", "context", "source", "expires")}
    properties |= {"importance": _number(call, "importance", int), "tags": _words(call.given("tags"))}
    result = call.memory.add(call.given("text"), **{name: value for name, value in properties.items() if value})
    what = "Remembered." if result.created else "This is known already."
    if result.redacted:
        what += f" Left out as secret: {', '.join(result.redacted)}."
    return call.done(record_path(result.id), what)


def _edit(call: Call) -> Response:
    memory = call.memory
    record = _find(memory, call.named("id"))
    if call.given("updated_at") != str(record.updated_at):
        raise ConflictError("this entry was changed since its page was loaded", "load it again, then change it")
    changes = _changes(call, record)
    if not changes:
        return call.done(record_path(record.id), "Nothing was changed.")
    change = memory.update(record.id, reason=call.given("reason"), **changes)
    return call.done(record_path(record.id), "Changed.", change)


def _changes(call: Call, record: Record) -> dict[str, Any]:
    """What differs from the record."""
    wanted: dict[str, Any] = {name: call.given(name).replace("\r\n", "\n") for name in _TEXTS}
    wanted |= {"type": call.given("type") or record.type, "tags": _words(call.given("tags"))}
    importance, confidence = _number(call, "importance", int), _number(call, "confidence", float)
    wanted |= {"importance": importance} if importance is not None else {}
    wanted |= {"confidence": confidence} if confidence is not None else {}
    changes = {name: value for name, value in wanted.items() if value != getattr(record, name)}
    if "text" in changes and "summary" in changes and not changes["summary"]:
        del changes["summary"]  # an empty one is made of the new text
    elif "text" in changes and wanted["summary"] == record.summary:
        changes.pop("summary", None)
    if expires := call.given("expires"):
        changes["expires"] = "" if expires == "never" else expires
    return changes


def _forget(call: Call) -> Response:
    change = call.memory.forget(call.named("id"), call.given("reason"))
    return call.done(record_path(change.record), "Forgotten: no search finds it any more.", change)


def _restore(call: Call) -> Response:
    change = call.memory.restore(call.named("id"))
    return call.done(record_path(change.record), "Restored.", change)


def _undo(call: Call) -> Response:
    """Undo a change by its number, which must be one of this entry, or else its latest one."""
    memory, number = call.memory, call.given("change")
    history = memory.history(call.named("id"))
    if number and number not in {str(change.change) for change in history}:
        raise NotFoundError(f"this entry has no change {number}", "load its page again")
    change, undone = memory.undo(number or history[-1].record)
    return call.done(record_path(change.record), f"Change {undone} was undone.", change)


def _supersede(call: Call) -> Response:
    memory = call.memory
    other = memory.entries.find(call.given("other"))
    change = memory.update(call.named("id"), supersedes=other.id)
    message = f"It replaces “{summary_of(other)}”."
    return call.done(record_path(change.record), message, memory.history(other.id)[-1])


# ── conflicts ─────────────────────────────────────────────────────────────────────────────────────────────────


def _conflicts(call: Call) -> Response:
    memory = call.memory
    return call.render("conflicts.html", pairs=_pairs(memory))


def _pairs(memory: Memory) -> Sequence[tuple[Record, Record, str]]:
    """Each pair of memories in conflict once: the newer, the older, and why."""
    found = memory.entries.in_conflict(memory.filters())
    records = {one.record.id: one.record for one in found}
    pairs, seen = [], set()
    for one in found:
        seen.add(one.record.id)
        for other in one.conflicts:
            if other.id not in seen and other.id in records:
                pairs += [(one.record, records[other.id], other.why)]
    return pairs


def _keep_one(call: Call) -> Response:
    memory, drop = call.memory, call.given("drop")
    memory.update(call.given("keep"), supersedes=drop, reason="kept of two in conflict")
    message = "Kept; the other one is retired and stays in the history."
    return call.done("/conflicts", message, memory.history(drop)[-1])  # to undo is to bring that one back


def _keep_both(call: Call) -> Response:
    """Both stay: each gets what it holds for, so that they no longer say something about the same."""
    contexts = [call.given("context"), call.given("other_context")]
    if not all(contexts) or contexts[0] == contexts[1]:
        raise UsageError(
            "both memories can stay only if they apply to different things",
            "write what each of them applies to, for example `staging` and `production`",
        )
    memory, reason = call.memory, "both kept of two in conflict"
    change = memory.update(call.given("id"), context=contexts[0], reason=reason)
    memory.update(call.given("other"), context=contexts[1], reason=reason)
    return call.done("/conflicts", "Both are kept.", change)


def _merge(call: Call) -> Response:
    text = call.given("text").replace("\r\n", "\n")
    reason = "merged of two in conflict"
    change = call.memory.update(call.given("id"), text=text, supersedes=call.given("other"), reason=reason)
    return call.done(record_path(change.record), "Merged. The other one is retired.", change)


# ── conversations and the timeline ────────────────────────────────────────────────────────────────────────────


def _list_conversations(call: Call) -> Response:
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
