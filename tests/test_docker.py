"""The Dockerfile and compose.yaml, as far as they can be checked without Docker: they have never been built here."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from mindex.cli.serve import serve_command
from mindex.config import SETTINGS

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
COMPOSE_TEXT = (ROOT / "compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVER, DATABASE = COMPOSE["services"]["server"], COMPOSE["services"]["database"]
# Read beside the settings.
OTHER_VARIABLES = {"MINDEX_CACHE_DIR"}


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.+)$", DOCKERFILE, re.MULTILINE)


def test_everything_that_is_copied_exists_and_is_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [part for line in instructions("COPY") if "--from" not in line for part in line.split()[:-1]]
    assert "src" in copied
    for source in copied:
        assert (ROOT / source).exists(), source
        assert source in allowed


def test_the_commands_of_both_files_are_ones_that_the_program_takes() -> None:
    (entry,) = instructions("ENTRYPOINT")
    assert json.loads(entry) == ["mindex"]
    for command in (json.loads(instructions("CMD")[-1]), SERVER["command"]):
        assert command[0] == "serve"
        options = serve_command.make_context("serve", command[1:], resilient_parsing=True).params
        assert options["address"] == "0.0.0.0:8080"
        assert str(options["root"]) == "/files"
        assert not options["no_token"]


def requirements(lock: str) -> dict[str, str]:
    """The entries of a lock file by name: version, marker and hashes."""
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    entries = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return {entry.split("==")[0]: entry for entry in entries}


def test_the_image_installs_only_packages_whose_hashes_are_locked() -> None:
    installs = [command for run in instructions("RUN") for command in run.split("&&") if re.search(r"\bpip\b", command)]
    assert len(installs) == 4
    locks = []
    for command in installs:
        if "--no-index" in command:  # what is in the folder: mindex itself
            assert "--no-deps" in command
            assert "wheel" not in command or "--no-build-isolation" in command or "dist/" in command
        else:
            assert "--require-hashes" in command
            locks += re.findall(r"-r (\S+)", command)
    assert sorted(locks) == [f"requirements/{name}.lock" for name in ("build", "postgres", "run")]
    for lock in locks:
        for entry in requirements(lock).values():
            assert re.fullmatch(r"[\w.-]+==[\w.+!-]+ ?(;[^-]*)?( +--hash=sha256:[0-9a-f]{64})+ *", entry), entry[:80]


def test_the_image_gets_the_versions_that_the_tests_ran_with() -> None:
    tested = {name: entry.split()[0] for name, entry in requirements("requirements/test.lock").items()}
    installed = {**requirements("requirements/run.lock"), **requirements("requirements/postgres.lock")}
    assert {name: entry.split()[0] for name, entry in installed.items()}.items() <= tested.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["postgres"]]
    names = {re.split(r"[^\w.-]", one)[0].lower() for one in needed}
    assert names <= set(installed)
    backend = re.split(r"[^\w.-]", project["build-system"]["requires"][0])[0]
    assert backend in requirements("requirements/build.lock")


def test_base_images_are_arguments_that_take_a_digest() -> None:
    assert instructions("FROM") == ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]
    (default,) = instructions("ARG")
    name, image = default.split("=")
    assert SERVER["build"]["args"] == {name: f"${{{name}:-{image}}}"}
    guide = (ROOT / "docs" / "team.md").read_text(encoding="utf-8")
    for argument in (name, "DATABASE_IMAGE"):
        assert re.search(rf"{argument}=\S+@sha256:", guide), argument


def test_the_container_does_not_run_as_root_and_its_data_is_in_a_volume() -> None:
    assert instructions("USER") == ["mindex"]
    assert instructions("VOLUME") == ["/data"]
    mounts = dict(volume.rsplit(":", 2)[:2] for volume in SERVER["volumes"] if volume.startswith("data:"))
    assert mounts == {"data": "/data"}
    assert any(volume.endswith(":/files:ro") for volume in SERVER["volumes"])


def test_health_is_asked_where_the_server_answers() -> None:
    (check,) = re.findall(r"CMD (\[\"python\".+?\])\s*$", instructions("HEALTHCHECK")[0])
    program, option, code = json.loads(check)
    assert (program, option) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    assert "http://127.0.0.1:8080/health" in code


def test_every_variable_of_ours_is_one_that_the_program_reads() -> None:
    known = {setting.variable for setting in SETTINGS} | OTHER_VARIABLES
    named = {name for name in SERVER["environment"] if name.startswith("MINDEX_")}
    named |= set(re.findall(r"\b(MINDEX_\w+)=", DOCKERFILE))
    assert named <= known
    assert named


def test_compose_starts_the_server_when_the_database_with_pgvector_is_healthy() -> None:
    assert re.fullmatch(
        r"\$\{DATABASE_IMAGE:-pgvector/pgvector:0\.(?:[89]|\d\d)\.\d+-pg(?:1[7-9]|2\d)\}", DATABASE["image"]
    )
    assert SERVER["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "pg_isready" in DATABASE["healthcheck"]["test"][-1]
    assert DATABASE["volumes"] == ["database:/var/lib/postgresql/data"]
    assert set(COMPOSE["volumes"]) == {"data", "database"}
    user = DATABASE["environment"]["POSTGRES_USER"]
    name = DATABASE["environment"]["POSTGRES_DB"]
    assert SERVER["environment"]["MINDEX_DB"] == f"postgresql://{user}@database/{name}"


def test_no_password_is_in_the_files_and_the_port_is_for_this_machine() -> None:
    for service, variable in ((SERVER, "PGPASSWORD"), (DATABASE, "POSTGRES_PASSWORD")):
        assert service["environment"][variable].startswith("${POSTGRES_PASSWORD:?")
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()
    assert all(port.startswith("127.0.0.1:") for port in SERVER["ports"])
    assert "ports" not in DATABASE


def test_the_server_is_given_more_time_to_end_than_it_takes() -> None:
    (shutdown,) = (setting.default for setting in SETTINGS if setting.key == "http.shutdown_seconds")
    assert int(SERVER["stop_grace_period"].removesuffix("s")) > float(str(shutdown)) + 5  # it also closes the database
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
