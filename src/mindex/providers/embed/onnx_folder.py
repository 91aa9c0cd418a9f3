"""An embedding model in a folder of one's own: what its files say of it, and what only running it tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace

from mindex.errors import EmbeddingError, ProviderError
from mindex.model import Model
from mindex.providers.base import failing_as
from mindex.providers.embed.cosine_background import background_of
from mindex.providers.embed.local import OUTPUTS, POOLED, POOLED_OUTPUT, LocalEmbedder, Recipe
from mindex.providers.model_files import keep, recall
from mindex.providers.onnx.engine import Engine, ModelFiles, open_engine
from mindex.providers.onnx.folder import ModelFolder, model_folder
from mindex.providers.packaged_models import EMBEDDING_MODEL

_ROLE = "embedding"
_LEAST_TOKENS = 4
_USUAL_TOKENS = 256
# What is embedded is at most a kilobyte long. A window that is never filled would only cost memory.
_MOST_TOKENS = 512
_MOST_DIMENSIONS = 65_536
_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean",  # differs by its length alone, and all are scaled to 1
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
_POOLING_NAMES = {"cls": "cls", "mean": "mean", "mean_sqrt_len_tokens": "mean", "max": "max", "lasttoken": "last"}


def folder_recipe(given: str) -> Recipe:
    """How vectors are made with the model at a path. Raises EmbeddingError that says what the folder lacks."""
    with failing_as(EmbeddingError), model_folder(given, "embedding.model") as folder:
        kept = recall(_ROLE, folder.files)
        recipe = _remembered(folder, kept) if kept else None
        if recipe is None:
            recipe = _examined(folder)
            files = recipe.files()
            facts = {"sha256": files.sha256, "scales_by_run": files.scales_by_run, "model": asdict(recipe.model)}
            keep(_ROLE, folder.files, facts)
        return recipe


def _remembered(folder: ModelFolder, kept: Mapping[str, object]) -> Recipe | None:
    sha256, model = kept.get("sha256"), kept.get("model")
    if not isinstance(sha256, str) or not isinstance(model, dict) or set(model) != {one.name for one in fields(Model)}:
        return None
    scales_by_run = bool(kept.get("scales_by_run"))
    files = ModelFiles(folder.weights, sha256, folder.tokenizer, EMBEDDING_MODEL, folder.hint, scales_by_run)
    return Recipe(Model(**model), lambda: files)


def _examined(folder: ModelFolder) -> Recipe:
    """Open the model, and run it on texts that have nothing to do with each other."""
    import numpy as np

    files = folder.examine(EMBEDDING_MODEL)
    engine = open_engine(files, OUTPUTS)
    described = _described(folder, files, engine)
    dimensions = _dimensions(folder, engine, described.pooling)
    draft = Recipe(replace(described, dimensions=dimensions), lambda: files)
    embedder = LocalEmbedder(recipe=draft)
    mean, std = background_of(lambda texts: np.stack([embedder.embed_query(text) for text in texts]), embedder.embed)
    return Recipe(replace(draft.model, background_mean=mean, background_std=std), lambda: files)


def _described(folder: ModelFolder, files: ModelFiles, engine: Engine) -> Model:
    """What the folder's files say, its dimensions left open."""
    pooling = POOLED if engine.output == POOLED_OUTPUT else _pooling(folder)
    query_prefix, text_prefix = _prefixes(folder)
    if folder.settings("1_Pooling/config.json").get("include_prompt") is False and (query_prefix or text_prefix):
        raise ProviderError(
            f"the model in {folder.path} leaves its prompts out when it pools, which mindex cannot do",
            f"export it as one graph with an output named {POOLED_OUTPUT}",
        )
    length = folder.settings("sentence_bert_config.json").get("max_seq_length")
    tokens = length if type(length) is int and length >= _LEAST_TOKENS else _USUAL_TOKENS
    return Model(
        provider="local",
        name=f"{folder.name}@{files.sha256[:8]}",
        dimensions=0,
        pooling=pooling,
        query_prefix=query_prefix,
        text_prefix=text_prefix,
        max_tokens=min(tokens, _MOST_TOKENS),
    )


def _pooling(folder: ModelFolder) -> str:
    modules = folder.setting("modules.json")
    for module in modules if isinstance(modules, list) else []:
        kind = str(module.get("type", "")) if isinstance(module, dict) else ""
        if kind.endswith("Dense"):
            raise ProviderError(
                f"the model in {folder.path} has a layer behind its ONNX file ({kind})",
                f"export it as one graph with an output named {POOLED_OUTPUT}",
            )
    said = folder.settings("1_Pooling/config.json")
    if not said:
        return "mean"
    mode = said.get("pooling_mode")
    wanted = {mode} if isinstance(mode, str) else {key for key in said if key.startswith("pooling_mode_") and said[key]}
    known = {(_POOLING | _POOLING_NAMES).get(str(one), "") for one in wanted}
    if len(known) != 1 or "" in known:
        asked = ", ".join(sorted(map(str, wanted)))
        raise ProviderError(
            f"the model in {folder.path} pools in a way that mindex does not know ({asked})",
            "use a model that pools by the first token, the last, the mean or the maximum",
        )
    return known.pop()


def _prefixes(folder: ModelFolder) -> tuple[str, str]:
    """What is put before a question and before a text."""
    said = folder.settings("config_sentence_transformers.json")
    found = said.get("prompts")
    prompts = {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
    usual = prompts.get(str(said.get("default_prompt_name")), "")
    text = next((prompts[key] for key in ("document", "passage", "corpus") if key in prompts), usual)
    return prompts.get("query", usual), text


def _dimensions(folder: ModelFolder, engine: Engine, pooling: str) -> int:
    """How long the vectors are: what the graph says, or else what it does."""
    answer, _ = engine.run([engine.tokenizer.encode("length").ids])
    if answer.ndim != (2 if pooling == POOLED else 3) or not 1 < answer.shape[-1] <= _MOST_DIMENSIONS:
        raise ProviderError(
            f"the model {folder.weights} answers with '{engine.output}' of shape {list(answer.shape)}: "
            "it is no embedding model",
            folder.hint,
        )
    dimensions = int(answer.shape[-1])
    said = folder.settings("1_Pooling/config.json")
    for key in ("word_embedding_dimension", "embedding_dimension"):
        if isinstance(said.get(key), int) and said[key] != dimensions:
            raise ProviderError(
                f"the model in {folder.path} makes {dimensions} dimensions, its 1_Pooling/config.json says {said[key]}",
                "put files of one and the same model into the folder",
            )
    return dimensions
