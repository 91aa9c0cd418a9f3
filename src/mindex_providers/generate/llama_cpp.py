"""Language models in GGUF files, run by llama.cpp. Its grammar holds a JSON answer to the schema, token by token."""

from dataclasses import replace

from mindex.errors import ProviderError
from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import Generator, Prompt
from mindex.providers.generate.remote import Body, ChatGenerator, ChatInterface, chat_body
from mindex_providers.gguf import describe
from mindex_providers.llama_cpp import LlamaServer


def create(settings: ProviderSettings) -> Generator:
    """Return the language model in the GGUF file that `settings.model` names; llama.cpp is started at first use.

    Raises ProviderError for a file that is not a language model.
    """
    file = describe(settings.model, "generation.model")
    if file.judges or not file.writes:
        message = f"{file.path} is not a language model: it reads and does not write"
        raise ProviderError(message, "let generation.model name another GGUF file")
    interface = ChatInterface("/v1/chat/completions", _body, drops_parameters=False)
    return ChatGenerator(LlamaServer("generation", file, settings.timeout), interface)


def _body(model: str, prompt: Prompt, refused: frozenset[str]) -> Body:
    plain = replace(prompt, system=_without_marks(prompt.system), user=_without_marks(prompt.user))
    return {**chat_body(model, plain, refused), "chat_template_kwargs": {"enable_thinking": False}}


def _without_marks(text: str) -> str:
    """Break the marks that end a turn: a text must not speak for another role."""
    return text.replace("<|", "< |").replace("|>", "| >")
