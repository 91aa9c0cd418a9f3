"""Language models that are servers, over a real socket."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mindex.errors import GenerationError
from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import MAX_ANSWER_CHARACTERS, Generator, Prompt, create_generator
from tests.providers.servers import ModelServer, changed, garbage, hang, html, huge, status

pytestmark = pytest.mark.usefixtures("alone")

EACH = pytest.mark.parametrize("provider", ["openai", "lmstudio", "groq", "azure", "ollama"])
CHATS = pytest.mark.parametrize("provider", ["openai", "ollama"])
SCHEMA: dict[str, object] = {"type": "object", "properties": {"facts": {"type": "array"}}, "required": ["facts"]}
ASKED = Prompt("You write JSON.", "Which facts are there?", 200, SCHEMA)
PLAIN = Prompt("You are brief.", "Say something.", 50)
KEY = "gk-0123456789abcdef"


def made(provider: str, server: ModelServer, timeout: float = 5.0) -> Generator:
    generator = create_generator(ProviderSettings(provider, "a-model", server.url, server.key, timeout))
    assert generator is not None
    return generator


@EACH
def test_the_answer_is_the_models_text(provider: str, server: ModelServer) -> None:
    server.says = " Ein Satz, knapp. \n"

    assert made(provider, server).generate(PLAIN) == "Ein Satz, knapp."


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("openai", "/v1/chat/completions"),
        ("lmstudio", "/v1/chat/completions"),
        ("groq", "/v1/chat/completions"),
        ("azure", "/openai/v1/chat/completions"),
    ],
)
def test_chat_completions_are_requested_as_documented(server: ModelServer, provider: str, path: str) -> None:
    server.key = KEY
    made(provider, server).generate(ASKED)

    (asked,) = server.asked
    assert asked.path == path
    assert asked.headers["api-key" if provider == "azure" else "authorization"].removeprefix("Bearer ") == KEY
    assert asked.body == {
        "model": "a-model",
        "messages": [
            {"role": "system", "content": "You write JSON."},
            {"role": "user", "content": "Which facts are there?"},
        ],
        "temperature": 0,
        "max_tokens": 200,
        "stream": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
    }


def test_ollama_is_called_by_its_own_interface(server: ModelServer) -> None:
    made("ollama", server).generate(ASKED)

    (asked,) = server.asked
    assert asked.path == "/api/chat"
    assert asked.body == {
        "model": "a-model",
        "messages": [
            {"role": "system", "content": "You write JSON."},
            {"role": "user", "content": "Which facts are there?"},
        ],
        "stream": False,
        "format": SCHEMA,
        "options": {"temperature": 0, "num_predict": 200},
    }


def test_ollama_is_given_a_window_that_holds_a_long_question(server: ModelServer) -> None:
    generator = made("ollama", server)
    for length in (3_000, 30_000, 10_000_000):
        generator.generate(Prompt("", "x" * length, 100))

    assert [body["options"].get("num_ctx") for body in server.bodies] == [None, 16_384, 32_768]


def test_a_server_that_takes_no_schema_gets_it_as_text(server: ModelServer) -> None:
    server.refuses = ("response_format",)
    generator = made("openai", server)

    generator.generate(ASKED)
    generator.generate(ASKED)

    assert len(server.asked) == 3  # refused once, and not offered again
    system = server.bodies[-1]["messages"][0]["content"]
    assert system.startswith("You write JSON.")
    assert '"required": ["facts"]' in system


def test_a_server_that_wants_other_parameters_gets_them(server: ModelServer) -> None:
    server.refuses = ("max_tokens", "temperature")
    generator = made("azure", server)

    generator.generate(PLAIN)
    generator.generate(PLAIN)

    assert len(server.asked) == 4
    assert server.bodies[-1]["max_completion_tokens"] == 50
    assert not {"max_tokens", "temperature"} & set(server.bodies[-1])


def test_a_refusal_that_has_another_reason_is_an_error(server: ModelServer) -> None:
    server.always = status(400, {"error": {"message": "the prompt is too long: 9000 tokens"}})

    with pytest.raises(GenerationError, match="the prompt is too long"):
        made("openai", server).generate(ASKED)

    assert len(server.asked) == 1


@CHATS
@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("<think>They want\nfacts.</think>\n{}", "{}"),
        ("They want facts.\n</think>{}", "{}"),
        ("<thinking>hm</thinking>{}", "{}"),
        ('{"a": "b < c"}', '{"a": "b < c"}'),
    ],
)
def test_thoughts_are_not_part_of_the_answer(provider: str, server: ModelServer, said: str, left: str) -> None:
    server.says = said

    assert made(provider, server).generate(ASKED) == left


@CHATS
@pytest.mark.parametrize("said", ["", "  \n", "<think>all of it", "<think>hm</think>", None])
def test_an_empty_answer_is_an_error(provider: str, server: ModelServer, said: Any) -> None:
    server.says = said

    with pytest.raises(GenerationError, match="answered nothing"):
        made(provider, server).generate(PLAIN)


@CHATS
def test_json_that_was_cut_off_is_an_error_and_prose_is_not(provider: str, server: ModelServer) -> None:
    server.says, server.finish = '{"facts": ["one', "length"
    generator = made(provider, server)

    with pytest.raises(GenerationError, match="did not come to an end within 200 tokens"):
        generator.generate(ASKED)
    assert generator.generate(PLAIN) == server.says


@CHATS
def test_a_model_that_goes_on_and_on_is_an_error(provider: str, server: ModelServer) -> None:
    server.says = "x" * (MAX_ANSWER_CHARACTERS + 1)
    with pytest.raises(GenerationError, match=f"answered {MAX_ANSWER_CHARACTERS + 1} characters"):
        made(provider, server).generate(PLAIN)

    server.tricks.append(huge(10))
    with pytest.raises(GenerationError, match="answers with more than 1 MB"):
        made(provider, server).generate(PLAIN)


@CHATS
@pytest.mark.parametrize("answer", [{}, [], 7, None, {"choices": [], "message": "x"}, {"choices": [7], "message": 7}])
def test_an_answer_without_a_message_is_an_error(provider: str, server: ModelServer, answer: object) -> None:
    server.always = changed(lambda _: answer)

    with pytest.raises(GenerationError, match="answers without a message"):
        made(provider, server).generate(PLAIN)


@CHATS
def test_a_non_text_message_is_rejected(provider: str, server: ModelServer) -> None:
    server.says = ["a", "list"]  # type: ignore[assignment]  # what a server may well do

    with pytest.raises(GenerationError, match="something else than text"):
        made(provider, server).generate(PLAIN)


@CHATS
def test_halves_of_characters_do_not_come_through(provider: str, server: ModelServer) -> None:
    server.says = "a \ud83d half"

    answer = made(provider, server).generate(Prompt("", "another \udc00 half"))

    assert answer == "a ? half"


@EACH
def test_failures_have_messages_and_recovery_is_automatic(provider: str, server: ModelServer) -> None:
    generator = made(provider, server)
    generator.load()

    server.stop()
    with pytest.raises(GenerationError, match="nothing answers at"):
        generator.generate(PLAIN)
    server.start()
    server.tricks.extend([status(500), status(429, retry_after="0")])
    assert generator.generate(PLAIN) == "ready"
    for trick, said in ((html, "web page"), (garbage, "not JSON")):
        server.tricks.append(trick)
        with pytest.raises(GenerationError, match=said):
            generator.generate(PLAIN)
    assert generator.generate(PLAIN) == "ready"


@EACH
def test_loading_sends_one_request_and_accepts_any_answer(provider: str, server: ModelServer) -> None:
    server.says, server.finish = "<think>", "length"  # a model that thinks has not come to its answer yet
    generator = made(provider, server)

    generator.load()
    generator.load()

    assert len(server.asked) == 1


@EACH
def test_loading_says_that_a_model_is_missing(provider: str, server: ModelServer) -> None:
    server.models = ("another",)

    with pytest.raises(GenerationError, match="has no model 'a-model'") as failed:
        made(provider, server).load()

    assert failed.value.hint
    if provider == "ollama":
        assert failed.value.hint == "run: ollama pull a-model"


@EACH
def test_an_answer_has_the_time_that_the_caller_gives_it(provider: str, server: ModelServer) -> None:
    server.always = hang
    started = time.monotonic()

    with pytest.raises(GenerationError, match="did not answer within"):
        made(provider, server, timeout=30).generate(PLAIN, seconds=0.4)

    assert time.monotonic() - started < 20  # it would hang for 30 s


def test_names_say_provider_and_model(server: ModelServer) -> None:
    assert made("groq", server).name == "groq/a-model"
    assert made("ollama", server).name == "ollama/a-model"
    unnamed = create_generator(ProviderSettings("lmstudio"))
    assert unnamed is not None
    assert unnamed.name == "lmstudio/http://127.0.0.1:1234/v1"
