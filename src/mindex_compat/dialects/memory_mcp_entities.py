"""The type that Memory MCP gives an entity: by its name and by the words around it. Pure functions."""

import re
from collections.abc import Iterable
from typing import Literal

EntityType = Literal["person", "organization", "project", "technology", "location", "concept", "document", "other"]

_TECHNOLOGIES = frozenset(
    """
    android angular ansible aws azure bash bun cassandra celery chrome clojure cobol css cuda dart deno django docker
    elasticsearch elixir erlang express fastapi fedora ffmpeg firefox flask flutter fortran gcc git github gitlab go
    gradle grafana graphql grpc hadoop haskell helm html http https ios java javascript jenkins jest jira jquery json
    julia jupyter kafka keras kotlin kubernetes laravel latex linux llvm lua macos mariadb markdown matlab maven mcp
    mongodb mysql neovim netlify next nginx nix node nodejs npm numpy oauth openapi opencv pandas perl php podman
    poetry postgres postgresql postman prometheus prolog pydantic pytest python pytorch rabbitmq rails react redis
    rest ruby rust safari scala selenium shell slack solr spark spring sql sqlite ssh svelte swift symfony tailwind
    tcp tensorflow terraform tls toml typescript ubuntu unix uvicorn vercel vim vite vscode vue wasm webassembly
    webpack windows xml yaml zig
    """.split()
)
_PLACES = frozenset(
    """
    africa america amsterdam argentina asia athens australia austria bangkok barcelona basel beijing belgium berlin
    bern boston brazil brussels budapest cairo california canada chicago chile china cologne copenhagen delhi denmark
    dresden dubai dublin egypt england europe finland france frankfurt geneva germany greece hamburg helsinki
    hungary india indonesia ireland israel istanbul italy jakarta japan kenya kyiv lagos leipzig lima lisbon london
    lyon madrid manila melbourne mexico milan montreal moscow mumbai munich nairobi netherlands nigeria norway oslo
    paris peru philippines poland portugal prague rome russia scotland seattle seoul shanghai singapore spain
    stockholm sweden switzerland sydney taipei tallinn texas thailand tokyo toronto turkey ukraine uk usa vienna
    vietnam warsaw washington zurich
    """.split()
)
_OF_PLACE = re.compile(
    r"(?:City|County|Island|Lake|Mount|River|Street|Avenue|Valley|Square|Bay)$|^(?:Lake|Mount|Port|San|New) "
)
_OF_ORGANIZATION = re.compile(
    r"\b(?:Inc|Corp|Corporation|Co|Company|Ltd|LLC|LLP|GmbH|AG|SE|SA|SARL|BV|PLC|University|Institute|Foundation|Bank|Group"
    r"|Association|Agency|Ministry|Hospital|School|College|Committee|Council|Department|Union|Labs?|Studios?|Team)\.?$"
)
_OF_DOCUMENT = re.compile(
    r"\.(?:md|txt|pdf|docx?|xlsx?|csv|html?|json|ya?ml|toml)$|^(?:RFC|ADR|ISO|PEP|DIN)[ -]?\d+", re.IGNORECASE
)
# `FastAPI`, `node.js`, `Python 3.12`, `utf-8`
_OF_TECHNOLOGY = re.compile(
    r"[a-z][A-Z]|^\w+\.(?:js|py|net|io|rs)$|^[A-Za-z][\w+#.]*[ -]v?\d+(?:\.\d+)*$|^[a-z]\w*\(\)$|[+#]$"
)
_FULL_NAME = re.compile(
    r"^(?:[A-ZÀ-Þ][\w'’-]+|[A-Z]\.)(?: (?:[A-ZÀ-Þ][\w'’-]+|[A-Z]\.|van|von|de|da|del|der|la|bin|al)){1,3}$"
)
_PROJECT = "(?:project|repository|repo)"
_TITLE = r"(?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau)\.? "
_ACTS = (
    r"(?:['’]s (?:birthday|wife|husband|boss|manager|team|phone|email)"
    r"|, (?:head|director|lead|manager|engineer|CEO|CTO)"
    r"| (?:said|says|asked|thinks|likes|loves|hates|prefers|wants|lives|works|leads|manages|reports|joined|moved|met"
    r"|knows|owns|reviews|called|told|drinks|eats|plays|enjoys)\b)"
)


def entity_types(names: Iterable[str], text: str) -> dict[str, dict[str, EntityType]]:
    """Return the type of each name, as an import stores them."""
    return {name: {"type": entity_type(name, text)} for name in names}


def entity_type(name: str, text: str) -> EntityType:
    """Return the type of a name that a text has. What the text says of it counts more than how it looks."""
    here, word = re.escape(name), name.casefold()

    def says(pattern: str) -> bool:
        return re.search(pattern, text) is not None

    if _OF_DOCUMENT.search(name):
        return "document"
    if says(rf"\b(?i:{_PROJECT}|codename) [\"'“]?{here}\b|\b{here}[\"'”]? {_PROJECT}\b"):
        return "project"
    if word in _TECHNOLOGIES or word.removesuffix(".js") in _TECHNOLOGIES or _OF_TECHNOLOGY.search(name):
        return "technology"
    if word in _PLACES or _OF_PLACE.search(name):
        return "location"
    if _OF_ORGANIZATION.search(name) or says(
        rf"\b(?:works? (?:at|for)|employed (?:at|by)|customer|client|vendor) {here}\b"
    ):
        return "organization"
    if name.startswith("@") or says(rf"\b{_TITLE}{here}\b") or says(rf"\b{here}{_ACTS}") or _FULL_NAME.match(name):
        return "person"
    if says(rf"\b(?:lives? in|based in|flight to|travel(?:s|led)? to|moved to|office in|located in) {here}\b"):
        return "location"
    if name.islower() or name.isupper() or "-" in name:
        return "concept"
    return "other"
