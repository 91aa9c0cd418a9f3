"""Pages about the memory itself: collections, health, secrets, settings and models. Most are for the owner."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from starlette.responses import Response
from starlette.routing import Route

from mindex.datatypes import Check
from mindex.datatypes.results import Report
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present.entries import secrets_removed_text
from mindex.present.reports import index_text
from mindex.present.settings import settings_json
from mindex.web.site import Call, Site

_COMMAND = re.compile(r"mindex (optimize|backfill|reembed|index)\b")


def upkeep_routes(site: Site) -> list[Route]:
    return [
        site.page("/collections", _collections),
        site.form("/collections/index", _index),
        site.form("/collections/remove", _remove),
        site.page("/job", lambda call: call.render("job.html", job=call.site.jobs.current)),
        site.page("/doctor", _doctor),
        site.form("/doctor/run", _run),
        site.page("/secrets", _secrets),
        site.form("/secrets/remove", _remove_secrets),
        site.page("/settings", _settings),
        site.page("/models", _models),
    ]


def _visible_job(call: Call) -> object:
    """The job that runs: its text names folders, so who sees a part of the files sees none."""
    return None if call.principal.collections else call.site.jobs.current


# ── collections ───────────────────────────────────────────────────────────────────────────────────────────────


def _collections(call: Call) -> Response:
    return call.render("collections.html", status=call.memory.status(), job=_visible_job(call))


def _index(call: Call) -> Response:
    """Index a folder, a collection or all of them, in the background."""
    memory, path = call.memory, call.given("path")
    folders = [call.site.folder(path)] if path else []
    if folders and not folders[0].is_dir():
        raise UsageError(f"there is no folder {folders[0]}", "check the path")
    call.site.jobs.start(f"index {path or 'all collections'}", lambda report: _index_report(memory, folders, report))
    return call.done("/collections", "Indexing has started.")


def _index_report(memory: Memory, folders: list[Path], report: Report) -> str:
    return index_text(memory.index(*folders, report=report))


def _remove(call: Call) -> Response:
    call.require_owner()  # it would be gone for all agents
    name = call.given("name")
    chunks = call.memory.collections.remove(name)
    return call.done("/collections", f"{name} was removed with {chunks:,} chunks; its files stay as they are.")


# ── health ────────────────────────────────────────────────────────────────────────────────────────────────────


def _doctor(call: Call) -> Response:
    call.require_owner()
    memory = call.memory
    checks = [(check, _action(check)) for check in memory.doctor()]
    return call.render(
        "doctor.html",
        checks=checks,
        status=memory.status(),
        statistics=memory.maintenance.statistics() if call.has_entries else None,
        job=_visible_job(call),
    )


def _action(check: Check) -> str:
    """The command that a failed check suggests, if a button can run it."""
    found = _COMMAND.search(check.fix) if not check.ok else None
    return found[1] if found else ""


def _run(call: Call) -> Response:
    """Do in the background what a check suggests."""
    call.require_owner()
    memory, action = call.memory, call.given("action")
    actions: dict[str, Callable[[Report], str]] = {
        "optimize": lambda _: _optimize_report(memory),
        "backfill": lambda report: "{} embedded, {} remaining".format(*memory.maintenance.backfill(report=report)),
        "reembed": lambda report: f"{memory.models.reembed(report=report).embedded} embedded",
        "index": lambda report: index_text(memory.index(report=report)),
    }
    if action not in actions:
        raise UsageError(f"unknown action '{action}'", f"use one of {', '.join(actions)}")
    call.site.jobs.start(action, actions[action])
    return call.done("/doctor", f"{action.capitalize()} has started.")


def _optimize_report(memory: Memory) -> str:
    memory.maintenance.optimize()
    return "optimized"


def _secrets(call: Call) -> Response:
    call.require_owner()
    is_scanned = call.given("scan") == "1"
    found = call.memory.maintenance.scan() if is_scanned else ()
    return call.render("secrets.html", is_scanned=is_scanned, found=found)


def _remove_secrets(call: Call) -> Response:
    call.require_owner()
    if call.given("sure") != "yes":
        raise UsageError(
            "entries with a secret are deleted permanently, with their history", "tick the box to confirm that"
        )
    return call.done("/secrets", secrets_removed_text(call.memory.maintenance.remove_secrets()))


# ── settings and models ───────────────────────────────────────────────────────────────────────────────────────


def _settings(call: Call) -> Response:
    call.require_owner()
    return call.render("settings.html", settings=settings_json(call.memory.settings))


def _models(call: Call) -> Response:
    call.require_owner()
    memory = call.memory
    return call.render("models.html", models=memory.models.list(), status=memory.status())
