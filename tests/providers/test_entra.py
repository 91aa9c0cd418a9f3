"""Microsoft Entra identities: Azure OpenAI and Azure AI Search are asked with a token if no key is set.

The identity is that of a machine, as Azure App Service gives it: its library asks a server of this test for tokens.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from mindex.errors import EmbeddingError
from mindex.providers import keys
from mindex.providers.base import ProviderSettings
from mindex.providers.known_servers import server_spec
from mindex.providers.server import Server
from mindex.store.open import open_store
from tests.providers.servers import ModelServer

pytestmark = pytest.mark.server

TOKEN = "token-of-this-machine"
SECRET = "header-of-the-identity-endpoint"


class IdentityEndpoint:
    """Gives tokens as Azure App Service does. `resources` are what tokens were asked for."""

    def __init__(self) -> None:
        self.resources: list[str] = []

    @contextmanager
    def serve(self) -> Iterator[str]:
        resources = self.resources

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.headers["X-IDENTITY-HEADER"] == SECRET
                resources.extend(parse_qs(urlsplit(self.path).query)["resource"])
                expires = str(int(time.time()) + 3_600)
                body = json.dumps({"access_token": TOKEN, "expires_on": expires, "token_type": "Bearer"}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
                """Nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}/token"
            server.shutdown()
            thread.join()


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Iterator[IdentityEndpoint]:
    endpoint = IdentityEndpoint()
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_SEARCH_API_KEY", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(keys, "_credential", None)
    monkeypatch.setattr(keys, "_failed_at", float("-inf"))
    with endpoint.serve() as url:
        monkeypatch.setenv("IDENTITY_ENDPOINT", url)
        monkeypatch.setenv("IDENTITY_HEADER", SECRET)
        yield endpoint
    if keys._credential is not None:
        keys._credential.close()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def azure_server(url: str) -> Server:
    """A deployment of Azure OpenAI at an address that wants a key, although it is on this machine."""
    return Server(replace(server_spec("embedding", ProviderSettings("azure", "ada", url), "ada"), needs_key=True))


def test_azure_openai_gets_a_token_of_the_identity_if_no_key_is_set(
    identity: IdentityEndpoint, server: ModelServer
) -> None:
    azure_server(server.url).post("/embeddings", {"model": "ada", "input": ["a"]})
    asked = server.asked[-1].headers
    assert (asked["authorization"], "api-key" in asked) == (f"Bearer {TOKEN}", False)
    assert identity.resources == ["https://cognitiveservices.azure.com"]


def test_a_key_wins_over_the_identity(
    identity: IdentityEndpoint, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "the-key")
    azure_server(server.url).post("/embeddings", {"model": "ada", "input": ["a"]})
    assert server.asked[-1].headers["api-key"] == "the-key"
    assert identity.resources == []


def test_whether_a_server_could_be_asked_is_said_without_asking_for_a_token(
    identity: IdentityEndpoint, server: ModelServer
) -> None:
    assert azure_server(server.url).trouble() == ""
    assert identity.resources == []


def test_without_a_key_and_an_identity_both_are_named(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "can_ask_identity", lambda: False)
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbeddingError, match=r"AZURE_OPENAI_API_KEY in the environment.* or sign in with an Entra"):
        azure_server(server.url).post("/embeddings", {"model": "ada", "input": ["a"]})


@pytest.mark.extension("mindex_azure")
def test_azure_search_gets_a_token_of_the_identity_over_tls(
    identity: IdentityEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.mindex_azure.azure_search_server import AzureSearchServer  # `scripts/core` deletes it

    certificate = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with AzureSearchServer(token=TOKEN, tls=context) as search:
        monkeypatch.setenv("AZURE_SEARCH_ENDPOINT", search.endpoint)
        with closing(open_store("azure:///docs")) as store:
            assert store.files.collections() == ()
    assert set(identity.resources) == {"https://search.azure.com"}


def make_certificate(folder: Path) -> Path:
    """A certificate of this machine's loopback address with its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mindex test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "certificate.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return file
