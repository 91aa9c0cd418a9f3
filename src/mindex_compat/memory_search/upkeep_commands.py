"""`ms config`, `mode`, `cache`, `cleanup`, `doctor`, `export`, `import` and `serve`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mindex.config import load_settings
from mindex.datatypes import Check
from mindex.errors import UsageError
from mindex.values import replace
from mindex_compat.memory_search.export_file import write_export
from mindex_compat.memory_search.guidance import in_own_words
from mindex_compat.memory_search.profiles import Modes, index_named, setting_of
from mindex_compat.memory_search.program import Program

DEFAULT_PORT = 3737
_PATH = click.Path(path_type=Path)


@click.group("config", short_help="Show and change settings.", no_args_is_help=True)
def config() -> None:
    """Show and change settings, by memory-search's keys or by those of `mindex config`."""


@config.command("get", short_help="Show a setting.")
@click.argument("key")
@click.pass_obj
def config_get(program: Program, /, key: str) -> None:
    """Show a setting and where it comes from."""
    name = setting_of(key)
    found = next((one for one in load_settings(Modes().options()).as_in_project() if one.setting.key == name), None)
    if found is None:
        raise UsageError(f"unknown key '{key}'", "`mindex config` shows all settings")
    value = ("(set)" if found.value else "") if found.setting.secret else found.value
    shown = {"key": key, "setting": name, "value": value, "origin": found.origin}
    program.emit(shown, lambda: f"{key} = {value} ({name}, {found.origin})")


@config.command("set", short_help="Change a setting.")
@click.argument("key")
@click.argument("value")
@click.pass_context
def config_set(ctx: click.Context, key: str, value: str) -> None:
    """Change a setting in the user config."""
    _core(ctx, "config", "set", key=setting_of(key), value=value)


def _core(ctx: click.Context, *path: str, **options: object) -> None:
    """Run a command of mindex."""
    root = ctx.find_root()
    command: click.Command | None = root.command
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(root, name)
    assert command is not None
    ctx.invoke(command, **options)


@click.group("mode", short_help="Use profiles of settings.", no_args_is_help=True)
def mode_() -> None:
    """Use profiles of settings, for the commands of `mindex ms`."""


@mode_.command("create", short_help="Store a profile.")
@click.argument("name")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="A setting (repeatable).")
@click.pass_obj
def mode_create(program: Program, /, name: str, values: tuple[str, ...]) -> None:
    """Store a profile of settings."""
    pairs = [one.partition("=") for one in values]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise UsageError(f"'{wrong[0]}' is not a setting", "write --set KEY=VALUE")
    Modes().create(name, {key.strip(): value for key, _, value in pairs})
    program.emit({"mode": name}, lambda: f"stored the mode {name}; `mindex ms mode set {name}` uses it")


@mode_.command("set", short_help="Use a profile from now on.")
@click.argument("name")
@click.pass_obj
def mode_set(program: Program, /, name: str) -> None:
    """Use a profile from now on."""
    Modes().activate(name)
    program.emit({"active": name}, lambda: f"using the mode {name}")


@mode_.command("show", short_help="Show a profile.")
@click.argument("name", required=False)
@click.pass_obj
def mode_show(program: Program, /, name: str | None) -> None:
    """Show a profile, or the active one."""
    modes = Modes()
    shown = name or modes.active
    values = modes.named(shown) if shown else {}
    program.emit(
        {"mode": shown, "settings": values},
        lambda: "\n".join([shown, *(f"  {key} = {value}" for key, value in values.items())]) if shown else "No mode.",
    )


@mode_.command("list", short_help="List the profiles.")
@click.pass_obj
def mode_list(program: Program, /) -> None:
    """List the profiles; the active one is marked."""
    modes = Modes()
    active, names = modes.active, list(modes.all())
    program.emit(
        {"modes": names, "active": active},
        lambda: "\n".join(f"{name} (active)" if name == active else name for name in names) or "No modes.",
    )


@mode_.command("clear", short_help="Use no profile.")
@click.pass_obj
def mode_clear(program: Program, /) -> None:
    """Use no profile from now on."""
    Modes().activate("")
    program.emit({"active": ""}, lambda: "using no mode")


@click.group("cache", short_help="Empty the caches.", no_args_is_help=True)
def cache() -> None:
    """Empty the caches."""


@cache.command("prune", short_help="Empty the caches.")
@click.pass_obj
def cache_prune(program: Program, /) -> None:
    """Empty the caches of queries, scores and rewordings; they fill again."""
    _optimize(program, caches=True)


@click.command("cleanup", short_help="Optimize the indexes and shrink the file.")
@click.option("--dry-run", is_flag=True, help="Show the size of the file and its caches, without changing them.")
@click.pass_obj
def cleanup(program: Program, /, dry_run: bool) -> None:
    """Optimize the indexes and shrink the file."""
    if not dry_run:
        _optimize(program, caches=False)
        return
    with program.opened() as memory:
        found = memory.status()
    program.emit(
        {"indexPath": found.db, "indexSize": found.size_bytes, "caches": found.caches},
        lambda: f"{found.db}: {found.size_bytes or 0:,} bytes, {sum(found.caches.values()):,} rows of caches",
    )


def _optimize(program: Program, *, caches: bool) -> None:
    with program.opened() as memory:
        done = memory.maintenance.optimize(caches=caches)
    program.emit(done, lambda: ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in done.items()))


@click.command("doctor", short_help="Check the index and the models.")
@click.pass_obj
def doctor(program: Program, /) -> None:
    """Check the database, indexes, folders and models, and suggest fixes."""
    with program.opened() as memory:
        checks = memory.doctor()
    failed = [one for one in checks if not one.ok]
    program.emit(
        {
            "ok": not failed,
            "checks": [{"name": one.name, "ok": one.ok, "message": one.message, "fix": one.fix} for one in checks],
        },
        lambda: "\n".join(map(_check_line, checks)),
    )
    if failed:
        sys.exit(1)


def _check_line(check: Check) -> str:
    text = "; ".join(filter(None, (check.message, "" if check.ok else check.fix)))
    return f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {in_own_words(text)}"


@click.command("export", short_help="Write the index to a JSON file.")
@click.option("-o", "--output", type=_PATH, default=Path("memory-export.json"), show_default=True, help="File.")
@click.pass_obj
def export(program: Program, /, output: Path) -> None:
    """Write files, chunks, collections and sessions as memory-search does. `mindex export` writes entries."""
    with program.opened() as memory:
        counts = write_export(memory, output)
    program.emit(
        {"file": str(output), **counts}, lambda: f"{output}: {', '.join(f'{n} {k}' for k, n in counts.items())}"
    )


@click.command("import", short_help="Import an index or an export of memory-search.")
@click.argument("path", type=_PATH)
@click.option("--merge", is_flag=True, help="Add to existing data; required unless the database is empty.")
@click.pass_obj
def import_(program: Program, /, path: Path, merge: bool) -> None:
    """Import index.db, a folder with indexes, or memory-export.json. Existing data is not replaced."""
    with program.opened(creates=True) as memory:
        if not merge and (memory.collections.list() or memory.list(limit=1).total):
            raise UsageError(
                f"{memory.settings.database} is not empty, and an import replaces nothing", "add --merge to add to it"
            )
        report = memory.transfer.import_(str(path), source="memory-search")
    lines = [
        f"{report.read} read: {report.added} added, {report.duplicates} already there, {len(report.skipped)} skipped"
    ]
    lines += [f"skipped {one.where}: {one.reason}" for one in report.skipped]
    program.emit(report, lambda: "\n".join(lines))


@click.command("serve", short_help="Serve /search, /get, /status and /index over HTTP.")
@click.option("-p", "--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="Port.")
@click.option("--no-token", is_flag=True, help="Require no access token, for this machine only.")
@click.pass_context
def serve(ctx: click.Context, port: int, no_token: bool) -> None:
    """Serve /search, /get, /status and /index over HTTP: `mindex serve --http PORT --tools memory-search`.

    Requests need an access token: `mindex token show` prints the owner's.
    """
    program: Program = ctx.obj
    inner = program.context
    with ctx.scope():
        ctx.obj = replace(inner, db=str(index_named(program.index))) if program.index else inner
        _core(ctx, "serve", address=str(port), no_token=no_token, tools="memory-search")


@click.group("cursor", short_help="Connect Cursor.", no_args_is_help=True)
def cursor() -> None:
    """Connect Cursor, as `mindex install cursor` does."""


_project = click.option("--project", is_flag=True, help="For the project in this folder only.")


@cursor.command("install", short_help="Connect Cursor.")
@_project
@click.pass_context
def cursor_install(ctx: click.Context, project: bool) -> None:
    """Add the server of mindex to Cursor's config."""
    _install(ctx, ("cursor",), project=project)


@cursor.command("uninstall", short_help="Disconnect Cursor.")
@_project
@click.pass_context
def cursor_uninstall(ctx: click.Context, project: bool) -> None:
    """Remove the server of mindex from Cursor's config."""
    _install(ctx, ("cursor",), project=project, undo=True)


@cursor.command("status", short_help="Show whether Cursor is connected.")
@click.pass_context
def cursor_status(ctx: click.Context) -> None:
    """List the clients of this machine, and whether mindex is connected."""
    _install(ctx, (), list_=True)


def _install(ctx: click.Context, names: tuple[str, ...], **options: object) -> None:
    with ctx.scope():
        ctx.obj = ctx.obj.context
        _core(ctx, "install", names=names, **options)
