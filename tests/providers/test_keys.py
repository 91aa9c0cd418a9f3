"""Where keys come from, and in which order."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from mindex.errors import EmbeddingError
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
from mindex.providers.keys import find_key
from tests.providers.servers import ModelServer, status

pytestmark = pytest.mark.usefixtures("alone")


def keyring(monkeypatch: pytest.MonkeyPatch, kept: dict[tuple[str, str], str] | Exception) -> list[tuple[str, str]]:
    """Replace the system's keyring by one with these keys. Returns the list of lookups, which grows with each."""
    asked: list[tuple[str, str]] = []

    def get_password(service: str, name: str) -> str | None:
        asked.append((service, name))
        if isinstance(kept, Exception):
            raise kept
        return kept.get((service, name))

    module = types.ModuleType("keyring")
    monkeypatch.setattr(module, "get_password", get_password, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", module)
    return asked


def test_the_settings_come_first_then_the_usual_variable_then_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring(monkeypatch, {("mindex", "embedding.api_key"): "from the keyring"})

    assert find_key("embedding", "", ("OPENAI_API_KEY",), keyring=True) == "from the keyring"
    monkeypatch.setenv("OPENAI_API_KEY", "customary")
    assert find_key("embedding", "", ("OPENAI_API_KEY",), keyring=True) == "customary"
    assert find_key("embedding", "given", ("OPENAI_API_KEY",), keyring=True) == "given"


@pytest.mark.parametrize("failure", [RuntimeError("no backend"), KeyError("locked"), ImportError("dbus")])
def test_a_keyring_that_fails_holds_no_key(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    keyring(monkeypatch, failure)

    assert find_key("rerank", "", (), keyring=True) == ""


def test_without_the_keyring_package_there_is_no_key() -> None:
    program = (
        "import sys; sys.modules['keyring'] = None\n"
        "from mindex.providers.keys import find_key\n"
        "assert find_key('embedding', '', (), keyring=True) == ''"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_key_of_the_keyring_reaches_the_server(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.key = "sk-kept-in-the-keyring"
    asked = keyring(monkeypatch, {("mindex", "embedding.api_key"): server.key})
    embedder = create_embedder(ProviderSettings("openai", "m", server.url))
    assert embedder is not None

    embedder.load()
    embedder.embed(["words"])

    assert asked == [("mindex", "embedding.api_key")]


def test_a_server_of_this_machine_that_needs_no_key_does_not_open_the_keyring(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = keyring(monkeypatch, RuntimeError("a window pops up and asks for a password"))
    embedder = create_embedder(ProviderSettings("ollama", "m", server.url))
    assert embedder is not None

    embedder.load()

    assert asked == []


def test_the_environment_variable_of_the_settings_reaches_the_server(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.key = "sk-from-the-environment"
    monkeypatch.setenv("MINDEX_EMBEDDING_API_KEY", server.key)

    with Memory(tmp_path / "m.db", options={"embedding.provider": "openai", "embedding.url": server.url}) as memory:
        assert memory.models.embedder is not None
        memory.models.embedder.load()

    assert server.asked[0].headers["authorization"] == f"Bearer {server.key}"


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        pytest.param("cloudflare", "CLOUDFLARE_API_TOKEN", marks=pytest.mark.extension("mindex_providers")),
        ("azure", "AZURE_OPENAI_API_KEY"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_without_a_key_the_error_names_every_place_for_one(
    provider: str, variable: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", "0123")
    if there:
        keyring(monkeypatch, {})
    else:
        monkeypatch.setitem(sys.modules, "keyring", None)
    url = "https://name.openai.azure.com" if provider == "azure" else ""
    embedder = create_embedder(ProviderSettings(provider, "m", url))
    assert embedder is not None

    with pytest.raises(EmbeddingError, match="wants a key, and there is none") as failed:
        embedder.load()

    assert f"MINDEX_EMBEDDING_API_KEY or {variable} in the environment" in failed.value.hint
    # A command that does not come with mindex is only named where it can be run.
    assert ("keyring set mindex embedding.api_key" in failed.value.hint) == there
    assert ("pip install keyring" in failed.value.hint) != there


def test_where_the_keyring_is_not_used_the_hint_does_not_mention_it(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring(monkeypatch, {})
    server.always = status(401, {"error": "unauthorized"})
    embedder = create_embedder(ProviderSettings("ollama", "m", server.url))
    assert embedder is not None
    with pytest.raises(EmbeddingError, match="wants a key") as failed:
        embedder.load()
    assert "OLLAMA_API_KEY in the environment" in failed.value.hint
    assert "keyring" not in failed.value.hint
