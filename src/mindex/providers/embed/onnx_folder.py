"""An embedding model in a folder: the settings in its files, and what is measured by running it."""

import re
from dataclasses import asdict, replace

from mindex.datatypes import Model
from mindex.errors import ProviderError
from mindex.providers.cache_files import dataclass_of
from mindex.providers.embed.local import OUTPUTS, POOLED, POOLED_OUTPUT, LocalEmbedder
from mindex.providers.embed.model_cards import MAX_DIMENSIONS, UNRELATED, background_of, space
from mindex.providers.hub import Preset
from mindex.providers.model_files import write_facts
from mindex.providers.onnx.engine import Engine, ModelFiles, open_engine
from mindex.providers.onnx.folder import ModelFolder

_MIN_TOKENS = 4
_USUAL_TOKENS = 256
# What is embedded is at most a kilobyte long. A window that is never filled would only cost memory.
_MAX_TOKENS = 512
# `mean_sqrt_len` differs from the mean in length alone, and all are scaled to 1.
_POOLING = {"cls": "cls", "mean": "mean", "mean_sqrt_len": "mean", "max": "max", "lasttoken": "last"}
_EXPORT = re.compile("-onnx(?=@)", re.IGNORECASE)  # of `onnx-community/bge-m3-ONNX@1a2b3c4d`
_AROUND_POOLING = re.compile(r"^pooling_mode_|_tokens?$")  # `pooling_mode_cls_token: true`, or `pooling_mode: "cls"`


def open_folder(folder: ModelFolder) -> tuple[Model, ModelFiles]:
    """Return the space and the files of the model in a folder. Raises ProviderError that says what the folder lacks."""
    known = repr(folder.preset)
    facts = folder.cached_facts()
    model = dataclass_of((facts or {}).get("model"), Model)
    if facts is None or model is None or facts.get("preset") != known:
        facts = folder.read_facts()
        model = _measured(folder, folder.files(facts))
        write_facts(folder.role, folder.parts, {**facts, "model": asdict(model), "preset": known})
    return model, folder.files(facts)


def _measured(folder: ModelFolder, files: ModelFiles) -> Model:
    """Open the model, and run it on unrelated texts."""
    import numpy as np  # 100 ms to import, and only a folder that is new needs it

    engine = open_engine(files, OUTPUTS)
    model = _described(folder, folder.name(files), engine)
    dimensions = _dimensions(folder, engine, model.pooling)
    if model.dimensions not in (0, dimensions):
        message = f"the model {folder.weights} makes {dimensions} dimensions, it should be {model.dimensions}"
        raise ProviderError(message, folder.hint)
    model = replace(model, dimensions=dimensions, sha256=files.sha256)
    embedder = LocalEmbedder(model, lambda: files)
    queries = np.stack([embedder.embed_query(text) for text in UNRELATED])
    mean, std = background_of(queries, embedder.embed(UNRELATED))
    return replace(model, background_mean=mean, background_std=std)


def _described(folder: ModelFolder, name: str, engine: Engine) -> Model:
    """Return what is known of the model before it runs.

    The table of presets says how a model of it reads texts. For others their own settings do, and what these leave open
    of a pulled model is taken from the models that are known by name.
    """
    if folder.preset is not None:
        return _preset_model(folder.preset, name, engine)
    model = _model_of_settings(folder, name, engine)
    return model if folder.pulled is None else _completed(folder, model)


def _preset_model(known: Preset, name: str, engine: Engine) -> Model:
    """Return what the table of presets says of a model."""
    if known.pooling == POOLED and engine.output != POOLED_OUTPUT:
        raise ProviderError(f"the model {name} has no output {POOLED_OUTPUT}", "use another export of it")
    pooling = POOLED if engine.output == POOLED_OUTPUT else known.pooling
    tokens = min(known.window, _MAX_TOKENS)
    return Model("local", name, known.dimensions, pooling, known.query_prefix, known.text_prefix, tokens)


def _completed(folder: ModelFolder, model: Model) -> Model:
    """Add what the model's name tells: many exports come without the settings of sentence-transformers."""
    known = space("local", _EXPORT.sub("", model.name))
    if not known.dimensions:
        return model
    if model.pooling != POOLED and not folder.settings("1_Pooling/config.json"):
        model = replace(model, pooling=known.pooling)
    if not folder.settings("sentence_bert_config.json"):
        model = replace(model, max_tokens=min(known.max_tokens, _MAX_TOKENS))
    if not (model.query_prefix or model.text_prefix):
        model = replace(model, query_prefix=known.query_prefix, text_prefix=known.text_prefix)
    return model


def _model_of_settings(folder: ModelFolder, name: str, engine: Engine) -> Model:
    """Return what the folder's files say of the model: not how long its vectors are."""
    pooling = POOLED if engine.output == POOLED_OUTPUT else _pooling(folder)
    query_prefix, text_prefix = _prefixes(folder)
    if folder.settings("1_Pooling/config.json").get("include_prompt") is False and (query_prefix or text_prefix):
        message = f"the model in {folder.path} leaves its prompts out when it pools, which mindex cannot do"
        raise ProviderError(message, f"export it as one graph with an output named {POOLED_OUTPUT}")
    length = folder.settings("sentence_bert_config.json").get("max_seq_length")
    tokens = length if type(length) is int and length >= _MIN_TOKENS else _USUAL_TOKENS
    return Model(
        provider="local",
        name=name,
        dimensions=0,
        pooling=pooling,
        query_prefix=query_prefix,
        text_prefix=text_prefix,
        max_tokens=min(tokens, _MAX_TOKENS),
    )


def _pooling(folder: ModelFolder) -> str:
    modules = folder.setting("modules.json")
    for module in modules if isinstance(modules, list) else []:
        kind = str(module.get("type", "")) if isinstance(module, dict) else ""
        if kind.endswith("Dense"):
            message = f"the model in {folder.path} has a layer behind its ONNX file ({kind})"
            raise ProviderError(message, f"export it as one graph with an output named {POOLED_OUTPUT}")
    settings = folder.settings("1_Pooling/config.json")
    if not settings:
        return "mean"
    mode = settings.get("pooling_mode")
    flags = {key for key in settings if key.startswith("pooling_mode_") and settings[key]}
    modes = {mode} if isinstance(mode, str) else flags
    known = {_POOLING.get(_AROUND_POOLING.sub("", mode), "") for mode in modes}
    if len(known) != 1 or "" in known:
        names = ", ".join(sorted(modes))
        message = f"the model in {folder.path} pools in a way that mindex does not know ({names})"
        raise ProviderError(message, "use a model that pools by the first token, the last, the mean or the maximum")
    return known.pop()


def _prefixes(folder: ModelFolder) -> tuple[str, str]:
    """Return what is put before a query and before a text."""
    settings = folder.settings("config_sentence_transformers.json")
    found = settings.get("prompts")
    prompts = {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
    default = prompts.get(str(settings.get("default_prompt_name")), "")
    text = next((prompts[key] for key in ("document", "passage", "corpus") if key in prompts), default)
    return prompts.get("query", default), text


def _dimensions(folder: ModelFolder, engine: Engine, pooling: str) -> int:
    """Return the length of the model's vectors. Raises ProviderError where its settings say another."""
    output, _ = engine.run([engine.tokenizer.encode("length").ids])
    if output.ndim != (2 if pooling == POOLED else 3) or not 1 < output.shape[-1] <= MAX_DIMENSIONS:
        answer = f"'{engine.output}' of shape {list(output.shape)}"
        raise ProviderError(
            f"the model {folder.weights} answers with {answer}: it is not an embedding model", folder.hint
        )
    dimensions = int(output.shape[-1])
    settings = folder.settings("1_Pooling/config.json")
    for key in ("word_embedding_dimension", "embedding_dimension"):
        said = settings.get(key)
        if isinstance(said, int) and said != dimensions:
            message = f"the model in {folder.path} makes {dimensions} dimensions, its 1_Pooling/config.json says {said}"
            raise ProviderError(message, "put files of one and the same model into the folder")
    return dimensions
