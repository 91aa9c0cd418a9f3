"""Settings as JSON: the key, the value as it may be shown, its origin and its meaning."""

from mindex.config import Configured, Settings, bare_address
from mindex.present.to_json import Json


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
