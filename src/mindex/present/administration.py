"""The text and JSON of backups, extensions, access tokens and settings."""

from collections.abc import Sequence

from mindex.clock import to_iso
from mindex.config import Configured, Settings, bare_address
from mindex.datatypes.access_tokens import ALL_AGENTS, Token
from mindex.datatypes.transfer import Backup, RestoredBackup
from mindex.present.text import aligned, counted, note_lines
from mindex.present.to_json import Json, to_json
from mindex.values import dataclass

_RIGHTS = {"write": "reads and writes", "read": "reads only", "metrics": "reads the metrics only"}


def settings_json(settings: Settings) -> list[dict[str, Json]]:
    """Every setting; a secret says only whether it is set, an address has no login."""
    return [
        {
            "key": one.setting.key,
            "value": shown_value(one),
            "origin": one.origin,
            "variable": one.setting.variable,
            "meaning": one.setting.meaning,
        }
        for one in settings
    ]


def changed_setting_json(one: Configured) -> dict[str, Json]:
    """A setting that was written to a file."""
    return {"key": one.setting.key, "value": shown_value(one), "file": one.origin}


def changed_setting_text(one: Configured) -> str:
    return f"{one.setting.key} = {shown_value(one)} in {one.origin}"


def shown_value(one: Configured) -> Json:
    if one.setting.secret:
        return "(set)" if one.value else ""
    if one.setting.address:
        bare = bare_address(str(one.value))
        return "(malformed)" if bare is None else bare
    if one.origin == "default" and one.setting.unset:
        return one.setting.unset
    if isinstance(one.value, tuple):
        return list(one.value)
    return one.value if isinstance(one.value, str | int | float) else dict(one.value)


def backup_text(backup: Backup) -> str:
    removed = [f"removed {path}" for path in backup.removed]
    return "\n".join(
        [f"{backup.path}: {counted(backup.records) or 'no records'} ({backup.size_bytes} bytes)", *removed]
    )


def restored_text(restored: RestoredBackup) -> str:
    lines = [f"{restored.db} is now {restored.backup}: {counted(restored.records) or 'no records'}"]
    if restored.kept_as:
        lines.append(f"the former content is in {restored.kept_as}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Plugin:
    """An extension: a top-level package, the distribution that it came with, and the names that it provides."""

    name: str
    distribution: str
    provides: tuple[str, ...]  # group and name: `importers notes-app`
    enabled: bool


def plugins_json(plugins: Sequence[Plugin], problems: Sequence[str]) -> dict[str, Json]:
    return {"plugins": [to_json(plugin) for plugin in plugins], "problems": list(problems)}


def plugins_text(plugins: Sequence[Plugin], problems: Sequence[str]) -> str:
    rows = [[one.name, one.distribution, "" if one.enabled else "disabled", ", ".join(one.provides)] for one in plugins]
    return "\n".join([*(aligned(rows) if rows else ["no extensions are installed"]), *note_lines(problems)])


def new_token_text(secret: str, token: Token) -> str:
    """The token on the first line, so that a script can take it; then what it is for."""
    if token.rights == "metrics":
        acts = f"{token.name}: {_RIGHTS['metrics']}, {_expiry(token)}"
    else:
        whom = "sees every agent" if token.agent == ALL_AGENTS else f"acts as the agent {token.agent}"
        files = f"sees the files of {_files(token)}" if token.collections else "sees all files"
        acts = f"{token.name}: {whom}, {_RIGHTS[token.rights]}, {files}, {_expiry(token)}"
    return f"{secret}\n{acts}\nnote: this is the only time that it is shown; only its hash is stored"


def new_token_json(secret: str, token: Token) -> dict[str, Json]:
    return {"token": secret, **to_json(token)}


def tokens_text(tokens: Sequence[Token], now: int) -> str:
    if not tokens:
        return "no tokens except the owner's; `mindex token add NAME` creates one"
    rows = [["name", "agent", "rights", "files", "created", "expires"]]
    for one in tokens:
        expires = "never" if one.expires_at is None else to_iso(one.expires_at)
        expired = " (EXPIRED)" if _has_expired(one, now) else ""
        whose = ["–", "–"] if one.rights == "metrics" else [one.agent, _files(one)]
        rows.append([one.name, whose[0], one.rights, whose[1], to_iso(one.created_at), expires + expired])
    return "\n".join(aligned(rows))


def tokens_json(tokens: Sequence[Token], now: int) -> dict[str, Json]:
    return {"tokens": [{**to_json(one), "expired": _has_expired(one, now)} for one in tokens]}


def _has_expired(token: Token, now: int) -> bool:
    return token.expires_at is not None and token.expires_at <= now


def _files(token: Token) -> str:
    return ", ".join(token.collections) or "all"


def _expiry(token: Token) -> str:
    return "until it is revoked" if token.expires_at is None else f"until {to_iso(token.expires_at)}"
